"""Models whose answer is a tag for each token: networks, feature CRFs, and what both share.

sentence_tagger.py, chain_tagger.py     what every tagger answers, and those whose answers come from one chain
labels.py, gold.py, partial_tags.py     label sets; gold tags, also those known in part
explanation.py, span_choice.py,         alternatives and confidences; spans above a threshold;
counted_tags.py                         how many spans to expect
evaluation.py, scores.py                scores of answers
ensemble.py, column_taggers.py          several taggers as one; taggers of further columns
networks/, features/                    the models
"""
