"""Run the pages of the documentation and write what they print and draw into them.

python -m tests.docs.refresh_tutorials                   # all tutorials
python -m tests.docs.refresh_tutorials chain ctc         # some
python -m tests.docs.refresh_tutorials reference/data    # a page of another folder
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tests.docs.tutorials import page_named, pages, pictures_of, run, with_outputs


def refresh(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        printed = run(page, Path(name))
        for picture in pictures_of(text):
            shutil.copy(Path(name) / picture, page.parent / picture)
    page.write_text(with_outputs(text, printed), encoding="utf-8")


def main(names: list[str]) -> None:
    for page in [page_named(name) for name in names] or pages():
        refresh(page)
        print(page.name)


if __name__ == "__main__":
    main(sys.argv[1:])
