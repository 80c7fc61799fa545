"""A newcomer's first ten minutes: the four paths through the documents, followed as they are written.

`make test` follows them inside the tests, on small files. `python -m tests.newcomers` follows them from a fresh clone
in an environment of its own.
"""
