"""The directive `names`: every public name of a module with its signature and docstring, which is Markdown.

A name is described once, under the shortest way to write it; where another module has it too, there is a link.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

MODULES = (
    "trelliswork", "trelliswork.distributions", "trelliswork.nn", "trelliswork.models", "trelliswork.training",
    "trelliswork.data", "trelliswork.text", "trelliswork.metrics", "trelliswork.draw", "trelliswork.fst",
    "trelliswork.semirings", "trelliswork.structures.beam", "trelliswork.terms", "trelliswork.sklearn",
    "trelliswork.sklearn.metrics", "trelliswork.web", "trelliswork.compat",
    "trelliswork.compat.torch_struct", "trelliswork.errors",
)  # fmt: skip
OWN = {
    "trelliswork.sklearn": ("CRF",),
    "trelliswork.errors": (
        "ConstraintError", "DataError", "ModelError", "OutputError", "ScoreError", "TermError", "TrellisworkError",
        "TrellisworkWarning", "is_out_of_memory",
    ),
}  # fmt: skip
CONSTANTS = {
    "trelliswork.data.FINE_TOKENS": "The pattern of `cut_tokens`: letters, digits and single signs apart, links whole.",
    "trelliswork.data.FileKind": "A kind of file, such as `conll`, `csv`, `jsonl`, `crfsuite`, `parquet` or `brat`.",
    "trelliswork.text.OFFSETS": "The units that offsets may be counted in.",
    "trelliswork.fst.EPSILON": "The number of the empty symbol, 0.",
    "trelliswork.terms.Term": "A lambda term: `Variable`, `Constant`, `Abstraction` or `Application`.",
    "trelliswork.terms.Type": "The type of a term: `Base` or `Arrow`.",
}
INHERITED_FROM_TORCH = "trelliswork.kl_divergence"


def public(module: str) -> tuple[str, ...]:
    """The public names of a module, in order."""
    return OWN.get(module) or tuple(sorted(import_module(module).__all__, key=str.lower))


def shortest(module: str, name: str) -> str:
    """The module under which a name of `module` is described: the first that has the same object."""
    found = getattr(import_module(module), name)
    for other in MODULES:
        if name in public(other) and getattr(import_module(other), name) is found:
            return "trelliswork.errors" if name == "TrellisworkError" else other
    return module


# --- a name as Markdown --------------------------------------------------------------------------------------


def described(module: str, name: str) -> str:
    """A directive of the Python domain with the docstring, and one for each public member of a class."""
    full, found = f"{module}.{name}", getattr(import_module(module), name)
    if full in CONSTANTS:
        return f"::::{{py:data}} {full}\n\n{CONSTANTS[full]}\n::::\n"
    if isinstance(found, ModuleType):
        return ""
    if inspect.isclass(found):
        members = "\n".join(member(each, value) for each, value in members_of(found))
        return f"::::{{py:class}} {full}{signature(found)}\n\n{text_of(found, full)}\n\n{members}\n::::\n"
    return f"::::{{py:function}} {full}{signature(found)}\n\n{text_of(found, full)}\n::::\n"


def members_of(found: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(found).items():
        if name.startswith("_") or not (own_text(unwrapped(value)) or name == "forward"):
            continue
        if isinstance(value, property | classmethod | staticmethod) or inspect.isfunction(value) or is_cached(value):
            yield name, value


def unwrapped(value: Any) -> Any:
    """The function in a class method, a static method or a cached property."""
    return getattr(value, "func", None) or getattr(value, "__func__", value)


def is_cached(value: Any) -> bool:
    return type(value).__name__ in ("cached_property", "lazy_property")


def member(name: str, value: Any) -> str:
    text = markdown(own_text(unwrapped(value)) or "What calling the layer does.")
    if isinstance(value, property) or is_cached(value):
        return f":::{{py:property}} {name}\n\n{text}\n:::\n"
    kind = {classmethod: "classmethod", staticmethod: "staticmethod"}.get(type(value), "method")
    return f":::{{py:{kind}}} {name}{signature(unwrapped(value), bound=kind != 'staticmethod')}\n\n{text}\n:::\n"


def text_of(found: Any, name: str) -> str:
    doc = own_text(found)
    if name == INHERITED_FROM_TORCH:
        return "KL(p ‖ q) of two distributions over the same structures; this is `torch.distributions.kl_divergence`."
    if not doc:
        raise ValueError(f"{name} has no docstring; write one")
    return markdown(doc)


def own_text(found: Any) -> str:
    """The docstring of a name itself: not the one that it would inherit, from torch for example."""
    return inspect.cleandoc(found.__doc__ or "")


SECTIONS = {"Args:": "Arguments", "Attributes:": "Attributes", "Returns:": "Returns", "Yields:": "Yields"}
ITEM = re.compile(r"(\w+): (.*)")


def markdown(doc: str) -> str:
    """Return a docstring as Markdown: examples fenced, sections of arguments as lists, angle brackets escaped."""
    lines: list[str] = []
    example: int | None = None  # the indentation of the example that is open
    for line in as_lists(doc.splitlines()):
        indent = len(line) - len(line.lstrip())
        if example is None and line.lstrip().startswith(">>>"):
            lines += ["", "```pycon"]
            example = indent
        elif example is not None and not line.strip():
            lines.append("```")
            example = None
        if example is not None:
            lines.append(line[example:])
        else:
            lines.append(line if line.startswith("    ") else plain(line))
    return "\n".join(lines if example is None else [*lines, "```"])


def as_lists(lines: list[str]) -> Iterator[str]:
    """Yield lines with the sections of a Google-style docstring, such as Args, as lists under a title."""
    section = False
    for line in lines:
        if line in SECTIONS:
            section = True
            yield from (f"__{SECTIONS[line]}__", "")
            continue
        section = section and (not line.strip() or (line.startswith("    ") and not line.lstrip().startswith(">>>")))
        text = line[4:] if section else line
        if section and (item := ITEM.fullmatch(text)):
            yield f"- `{item[1]}`: {item[2]}"
        else:  # what belongs to an item is indented by two
            yield f"  {text[4:]}" if section and text.startswith("    ") else text


def plain(line: str) -> str:
    parts = re.split(r"(`[^`]*`)", line)
    parts[::2] = [part.replace("<", "&lt;").replace("*", "\\*").replace("$", "\\$") for part in parts[::2]]
    return "".join(parts)


def signature(found: Any, bound: bool = False) -> str:
    """What stands in the brackets of a call; long lists of settings are described elsewhere."""
    try:
        parameters = list(inspect.signature(found).parameters.values())
    except (TypeError, ValueError):
        return "()"
    if getattr(found, "_is_protocol", False):
        return ""
    parameters = parameters[1:] if bound else parameters
    if len(parameters) > 14:
        return "(**settings)"
    return f"({', '.join(arguments(parameters))})"


def arguments(parameters: list[inspect.Parameter]) -> Iterator[str]:
    star = False
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and not star:
            star = True
            yield "*"
        star = star or each.kind is each.VAR_POSITIONAL
        mark = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        kind = annotation(each.annotation)
        default = "" if each.default is each.empty else f"{' = ' if kind else '='}{shown(each.default)}"
        yield f"{mark}{each.name}{kind}{default}"


def annotation(kind: Any) -> str:
    """An annotation as the source has it, shapes included; nothing where it is long."""
    if not isinstance(kind, str) or len(kind) > 90:
        return ""
    return f": {kind}"


def shown(value: Any) -> str:
    text = repr(value)
    return "..." if "<" in text or len(text) > 40 else text


# --- the directive -------------------------------------------------------------------------------------------


class Names(SphinxDirective):
    """```{names} trelliswork.metrics``` describes all public names of a module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = self.arguments[0]
        own, elsewhere = [], []
        for name in public(module):
            (own if shortest(module, name) == module else elsewhere).append(name)
        text = "\n".join(described(module, name) for name in own)
        if elsewhere:
            links = ", ".join(f"{{py:obj}}`{shortest(module, name)}.{name}`" for name in elsewhere)
            text += f"\nDescribed elsewhere: {links}.\n"
        node = nodes.container()
        self.state.nested_parse(text.splitlines(), self.content_offset, node)
        return list(node.children)
