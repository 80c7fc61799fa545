"""The score of a model on sentences, printed: `python -m trelliswork.web.teaching.scoring FOLDER FILE`."""

from __future__ import annotations

import json
import sys
from typing import Any

from trelliswork.cli.gold_files import GOLD_FILES
from trelliswork.data import Choices
from trelliswork.models import load


def score(folder: str, file: str) -> dict[str, Any]:
    """The score that counts for the model, and its name."""
    model: Any = load(folder)
    _, opened = GOLD_FILES[model.learns_from].open(file, Choices(), None)
    gold, _ = model.readable_gold(list(opened))
    found = model.evaluate(gold)
    return {"metric": found["metric"], "score": found["score"]}


if __name__ == "__main__":
    print(json.dumps(score(*sys.argv[1:3])))
