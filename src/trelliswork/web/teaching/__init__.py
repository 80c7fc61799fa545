"""Teaching: sentences in a useful order, decisions that survive every crash, and training on them.

| file | what is in it |
|---|---|
| `journal.py` | a file of records that only grows, or loses its last one |
| `lesson.py` | a set of sentences with the decisions about them |
| `school.py` | the lesson that is open, its ranking, and what the paths of the API answer |
| `material.py` | the files that a model is trained on again |
| `scoring.py` | the score of a model on the dev sentences |
| `training.py` | `trelliswork train` on what was taught, and the better model in the place of the other |
| `trees.py` | decisions about dependency trees, as CoNLL-U |
| `uncertainty.py` | how unsure a model is of sentences; sentences of uploaded files (run by workers) |
"""
