"""Accuracy on real corpora, every model trained and scored through the command line.

    python -m benchmarks.accuracy                        every run that is not stored yet (all: about two hours)
    python -m benchmarks.accuracy --only memm hmm        these again; the others stay as they were
    python -m benchmarks.accuracy --only bilstm --seed 1
    python -m benchmarks.accuracy --page                 no run: the pages from what is stored

Results are kept run by run in docs/results/accuracy.json; docs/results/accuracy.md and tables of README.md
and docs/tutorials/choosing.md are made from all of them. Exit status 1 when a goal is missed.
"""
