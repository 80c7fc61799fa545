"""`python -m trelliswork`."""

import os
import sys

if __name__ == "__main__":
    # Python has put the current folder first; no command runs the files there (see cli/inputs.py).
    if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:
        del sys.path[0]
    from trelliswork.cli.entry import main

    sys.exit(main())
