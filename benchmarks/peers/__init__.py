"""Parsers of other projects, each run by the Python of its own environment: these files import nothing of ours.

    PYTHON udpipe_parser.py train TRAIN.conllu MODEL      # a short training: speed does not depend on it
    PYTHON udpipe_parser.py parse MODEL IN.conllu OUT.conllu

`parse` loads the model, then parses the file once for each line that it reads from standard input, and answers with
the processor seconds that it took; `served` does that for all of them.
"""
