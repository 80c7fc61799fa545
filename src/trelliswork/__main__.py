"""`python -m trelliswork`."""

import sys

from trelliswork.cli.main import run

if __name__ == "__main__":
    sys.exit(run())
