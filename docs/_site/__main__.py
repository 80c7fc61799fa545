"""`python docs/_site` builds the site strictly and checks every link in it: what `make docs` does."""

from __future__ import annotations

import gc
import sys
from argparse import ArgumentParser
from pathlib import Path

from sphinx.cmd.build import main as sphinx

DOCS = Path(__file__).parents[1]
# In place of this folder, whose files are parts of the package _site.
sys.path[:1] = [str(DOCS), str(DOCS.parent), str(DOCS.parent / "src")]

from _site.checks import broken_links  # noqa: E402, as docs/conf.py imports it


def build(out: Path) -> int:
    """Exit status 0 if there was no warning and no broken link; what is wrong is printed."""
    gc.set_threshold(50_000)  # pages are many objects and little garbage
    status = sphinx(["-W", "-n", "--keep-going", "-q", "-d", str(out / "doctrees"), str(DOCS), str(out / "html")])
    broken = broken_links(out / "html")
    print("\n".join(broken) or f"site: {out / 'html' / 'index.html'}")
    return int(status != 0 or bool(broken))


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DOCS / "_build")
    return build(parser.parse_args().out)


if __name__ == "__main__":
    sys.exit(main())
