"""Extensions from other packages: encoders, data formats, models and structures that are found by entry points.

A package names them in its pyproject.toml, and installing it is all that a user does:

    [project.entry-points."trelliswork.encoders"]
    mean = "my_package.encoders:MeanEncoder"

Names are read from the metadata of installed packages when they are first asked for; the code of an extension is
imported when it is used, so that a broken one harms no other. A name that the library uses itself stays its own.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trelliswork.errors import TrellisworkError
from trelliswork.lazy import lazy_module
from trelliswork.logs import tell

if TYPE_CHECKING:
    from importlib import metadata
else:
    metadata = lazy_module("importlib.metadata")

KINDS = {"encoders": "encoder", "formats": "format", "models": "model", "structures": "structure"}
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True)
class Plugin:
    """An extension: its kind (one of `KINDS`), its name, and the package that brings it."""

    kind: str
    name: str
    package: str
    version: str
    entry: metadata.EntryPoint

    def load(self) -> Any:
        """Return the object that the entry point names, imported now."""
        try:
            return self.entry.load()
        except (Exception, SystemExit) as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            problem = (
                f"the {KINDS[self.kind]} {self.name!r} of the package {self.package} {self.version} cannot be imported"
            )
            raise TrellisworkError(f"{problem}: {why}; {self.fix}") from error

    @property
    def fix(self) -> str:
        """Advice for an extension that does not work."""
        return f"update it with pip install -U {self.package}, or remove it with pip uninstall {self.package}"


@functools.cache
def plugins_of(kind: str) -> Mapping[str, Plugin]:
    """Return the extensions of a kind by name; of several with one name, that of the first package."""
    plugins: dict[str, Plugin] = {}
    try:
        entries = metadata.entry_points(group=f"trelliswork.{kind}")
    except Exception as error:  # damaged metadata of any package
        tell(f"extensions cannot be looked for: {type(error).__name__}: {error}", level=logging.WARNING)
        return plugins
    for entry in entries:
        package, version = ("?", "?") if entry.dist is None else (entry.dist.name or "?", entry.dist.version or "?")
        plugin = Plugin(kind, entry.name, package, version, entry)
        if not _NAME.fullmatch(entry.name):
            problem = "expected names of small letters, digits, - and _"
            tell(f"{problem}, got the {KINDS[kind]} {entry.name!r} of {plugin.package}", level=logging.WARNING)
        elif (first := plugins.setdefault(entry.name, plugin)) is not plugin and first.package != plugin.package:
            both = f"{first.package} and {plugin.package} both have the {KINDS[kind]} {entry.name!r}"
            tell(f"{both}; that of {first.package} is used", level=logging.WARNING)
    return plugins
