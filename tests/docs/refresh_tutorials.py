"""Run the tutorials and write what they print and draw into them.

python -m tests.docs.refresh_tutorials             # all pages
python -m tests.docs.refresh_tutorials chain ctc   # some
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tests.docs.tutorials import FOLDER, pages, pictures_of, run, with_outputs


def refresh(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        printed = run(page, Path(name))
        for picture in pictures_of(text):
            shutil.copy(Path(name) / picture, page.parent / picture)
    page.write_text(with_outputs(text, printed), encoding="utf-8")


def main(names: list[str]) -> None:
    for page in [FOLDER / f"{name}.md" for name in names] or pages():
        refresh(page)
        print(page.name)


if __name__ == "__main__":
    main(sys.argv[1:])
