"""What a run depends on, so that it is only resumed with the same settings, model and data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.training.config import TrainingConfig

if TYPE_CHECKING:
    from torch import nn

NO_MATTER = ("checkpoint_every",)  # settings that may change between one start and the next


def fingerprint(
    model: nn.Module, train: Sequence[Sentence], dev: Sequence[Sentence] | None, config: TrainingConfig
) -> dict[str, Any]:
    """Settings, model and data as plain values."""
    settings = getattr(getattr(model, "config", None), "to_dict", dict)
    found = {
        "settings": {name: value for name, value in config.to_dict().items() if name not in NO_MATTER},
        "model": {"kind": type(model).__name__, **settings()},
        "training data": _of_data(train),
        "dev data": _of_data(dev or ()),
        "shapes": {name: list(tensor.shape) for name, tensor in model.state_dict().items()},
    }
    return json.loads(json.dumps(found))


def _of_data(sentences: Sequence[Sentence]) -> dict[str, Any]:
    digest = hashlib.blake2b(digest_size=16)
    for sentence in sentences:
        answers = (each for each in (sentence.heads, sentence.brackets, sentence.target) if each is not None)
        digest.update(json.dumps([sentence.words, sentence.tags, sentence.features, *answers]).encode())
    return {"sentences": len(sentences), "tokens": sum(map(len, sentences)), "content": digest.hexdigest()}


def refuse_differences(then: Mapping[str, Any], now: Mapping[str, Any], place: str, kind: str = "interrupted") -> None:
    """Raise an error that says what differs between the run that left something there and this one."""
    found = [text for part in now for text in _differences(part, then.get(part, {}), now[part])]
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        raise TrellisworkError(
            f"{place}: expected the settings and data of the {kind} run; {'; '.join(found[:3])}{more}; "
            "give the same again, or train anew without --resume"
        )


def _differences(part: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    if part.endswith("data"):
        sizes = [f"{each.get('sentences', 0):,} sentences of {each.get('tokens', 0):,} tokens" for each in (then, now)]
        same_size = "content" if sizes[0] == sizes[1] else f"it had {sizes[0]}, and has {sizes[1]}"
        return [f"the {part} differs ({same_size})"] if names else []
    where = "the shape of " if part == "shapes" else ""
    return [f"{where}{name} was {then.get(name)!r} and is {now.get(name)!r}" for name in names]
