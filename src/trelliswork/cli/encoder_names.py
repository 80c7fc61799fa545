"""Names after --pretrained, checked before torch is loaded: a folder, or a model of the Hugging Face hub."""

from __future__ import annotations

import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from trelliswork.data.folder_files import read_object
from trelliswork.errors import TrellisworkError
from trelliswork.lazy import require

NEEDED = ("transformers", "a pretrained encoder", "transformers")  # a module, what for, and its extra
HUB = "https://huggingface.co"
SECONDS = 5.0  # to wait for an answer of the hub
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_OWN_OPTIONS = "pretrained_"  # how the names of options begin that say more about an encoder


def check_encoder(options: Mapping[str, object], defaults: Mapping[str, object]) -> None:
    """Refuse an encoder that is not there, a missing library, and options about an encoder when none is named.

    Args:
        options: All options by name.
        defaults: The values of options that stand for nothing.
    """
    name = options.get("pretrained")
    if name:
        require(*NEEDED)
        check_name(str(name))
        return
    if options.get("init") is not None:
        return  # the network may have one
    for option, value in options.items():
        if option.startswith(_OWN_OPTIONS) and value is not None and value != defaults.get(option):
            given = "--" + option.replace("_", "-")
            raise TrellisworkError(f"{given} is about a pretrained encoder; add --pretrained NAME|DIR or leave it out")


def check_name(name: str) -> None:
    """Refuse what is neither the folder of a transformer nor the name of one on the hub."""
    path = Path(name).expanduser()
    if path.exists():
        _check_folder(name, path)
    elif name.startswith((".", "~", os.sep)) or not _NAME.fullmatch(name):
        raise TrellisworkError(f"{name}: expected the folder of a model of Hugging Face, got nothing; check the path")
    elif not _is_cached(name):
        _ask_hub(name)


def _check_folder(name: str, path: Path) -> None:
    expected = f"{name}: expected a folder with a model of Hugging Face"
    if not path.is_dir():
        raise TrellisworkError(f"{expected}, got a file; name the folder")
    if not (path / "config.json").is_file():
        raise TrellisworkError(f"{expected}, got one without config.json; check the path")
    config = read_object(path / "config.json")
    if "model_type" not in config:
        fix = "start from it with --init" if "format_version" in config else "check the path"
        raise TrellisworkError(f"{expected}, got a config.json without model_type; {fix}")
    if not any(path.glob("*.safetensors")):
        raise TrellisworkError(f"{expected}, got one without weights in safetensors; save it again with transformers")


def _is_cached(name: str) -> bool:
    """Return whether an earlier download left the model where `huggingface_hub` keeps them."""
    home = os.environ.get("HF_HOME", "~/.cache/huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE", f"{home}/hub")).expanduser()
    return any((cache / f"models--{name.replace('/', '--')}" / "snapshots").glob("*/config.json"))


def _ask_hub(name: str) -> None:
    """Refuse a name that the hub does not know, or cannot be asked about."""
    fix = "check the name, or give a folder"
    if os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "ON", "YES", "TRUE"):
        raise TrellisworkError(f"{name}: not among the models on this machine, and HF_HUB_OFFLINE is set; {fix}")
    hub = os.environ.get("HF_ENDPOINT", HUB)
    request = urllib.request.Request(f"{hub}/{name}/resolve/main/config.json", method="HEAD")
    try:
        urllib.request.urlopen(request, timeout=SECONDS).close()
    except urllib.error.HTTPError as error:
        if error.code == 404 or (error.code == 401 and "HF_TOKEN" not in os.environ):
            raise TrellisworkError(f"{name}: no folder, and {hub} has no public model of that name; {fix}") from error
    except OSError as error:
        raise TrellisworkError(
            f"{name}: no folder, not among the models on this machine, and {hub} cannot be reached; {fix}"
        ) from error
