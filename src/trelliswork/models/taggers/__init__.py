"""Models whose answer is a tag for each token: networks, feature CRFs, and what both share.

sentence_tagger.py                      the answers of every tagger
posterior.py, span_choice.py            tags, alternatives and confidences of a batch; spans above a threshold
labels.py, gold.py                      label sets; gold tags, also those known in part
evaluation.py                           scores of answers
averaged_tagger.py, ensemble.py         answers averaged over several chains; several taggers as one
column_taggers.py                       taggers of further columns
networks/, features/                    the models
"""
