"""Teaching: sentences in a useful order, decisions that survive every crash, and training on them.

| file | what is in it |
|---|---|
| `lesson.py` | a set of sentences with the decisions about them in a file that only grows, or loses its last line |
| `session.py` | the lesson that is open, its ranking, and what the paths of the API answer |
| `training.py` | `trelliswork train` on what was taught and what the model was trained on; the better model is kept |
| `uncertainty.py` | how unsure a model is of sentences, and its score; sentences of uploaded files (run by workers) |
"""
