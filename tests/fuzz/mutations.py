"""Changes to valid inputs, each small and most of them wrong: bytes, lines, fields, encodings, numbers, JSON values."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

Mutation = Callable[[bytes, Random], bytes]

NUMBERS = (
    b"-1", b"0", b"1", b"999999999999", b"9" * 5000, b"1e999", b"-1e308", b"NaN", b"nan", b"inf", b"-inf", b"1_0",
    "\u00b2".encode(), "\u0663".encode(),
)  # fmt: skip
TOKENS = (
    *NUMBERS, b"", b" ", b"\t", b"\n", b"\n\n", b"_", b"-", b"O", b"B-", b"I-X", b"-X", b"null", b"true", b"[]", b"{}",
    b'"', b"'", b"\\", b"%x[0,0]", b"%x[", b"]", b"(", b")", b"((((", b"))))", b"[" * 2000, b"{" * 2000, b"(" * 2000,
    b"#", b"=", b":", b"|", b"?", b"\x00", b"\x1b[31m", b"\xff", b"\xed\xa0\x80", "\u2028".encode(), "\u0301".encode(),
    "\ufeff".encode(), "\U0001f600".encode(), "\u202e".encode(), b"../../etc/passwd", b"os:system", b"\r", b"1-2",
    b"2.1", b"a" * 3000, b"<eps>", b"</s>", b"__class__",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 10**6, 10**9, 2**31 - 1, 2**31, 2**63, 10**30, -(10**30), 0.0, -0.0, 0.5,
    1e308, -1e308, 1e-320, "", "a", "O", "0", "\u0000", "\ud800", "x" * 3000, "../../etc/passwd", "os:system",
    "/dev/zero", "NaN", "-inf", [], {}, [[]], [None], [1, 2, 3], ["a", "a"], {"a": 1}, [0.5], [[1, 2], [3]],
    [[0, 0, 0]], {"": {}}, [-1], [10**9], "9" * 5000,
)  # fmt: skip


def bytes_changed(content: bytes, source: Random) -> bytes:
    """A few bytes flipped, inserted, dropped or doubled."""
    found = bytearray(content)
    for _ in range(source.choice([1, 1, 1, 2, 5])):
        place = source.randrange(len(found) + 1)
        kind = source.randrange(4)
        if kind == 0 and place < len(found):
            found[place] ^= 1 << source.randrange(8)
        elif kind == 1:
            found[place:place] = bytes([source.randrange(256)])
        elif kind == 2:
            del found[place : place + source.choice([1, 1, 4, 16])]
        else:
            found[place:place] = found[place : place + source.choice([1, 4, 30])]
    return bytes(found)


def lines_changed(content: bytes, source: Random) -> bytes:
    """Lines dropped, doubled, exchanged, joined, repeated or put elsewhere."""
    lines = content.split(b"\n")
    i, j = source.randrange(len(lines)), source.randrange(len(lines))
    kind = source.randrange(6)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(j, lines[i])
    elif kind == 2:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 3 and i + 1 < len(lines):
        lines[i : i + 2] = [lines[i] + source.choice([b"", b" ", b"\t"]) + lines[i + 1]]
    elif kind == 4:
        lines[i:i] = [lines[i]] * source.choice([2, 50])
    else:
        lines.insert(i, source.choice(TOKENS))
    return b"\n".join(lines)


def fields_changed(content: bytes, source: Random) -> bytes:
    """One field of a line replaced, dropped, doubled or moved."""
    lines = content.split(b"\n")
    i = source.randrange(len(lines))
    apart = source.choice([each for each in (b"\t", b" ", b",", b":", b"=", b"|") if each in lines[i]] or [b"\t"])
    fields = lines[i].split(apart)
    k = source.randrange(len(fields))
    kind = source.randrange(5)
    if kind <= 1:
        fields[k] = source.choice(TOKENS)
    elif kind == 2:
        del fields[k]
    elif kind == 3:
        fields.insert(k, fields[source.randrange(len(fields))])
    else:
        source.shuffle(fields)
    lines[i] = apart.join(fields)
    return b"\n".join(lines)


def tokens_put_in(content: bytes, source: Random) -> bytes:
    """Something odd in the middle of it."""
    place = source.randrange(len(content) + 1)
    return content[:place] + source.choice(TOKENS) + content[place + source.choice([0, 0, 1, 3]) :]


def numbers_changed(content: bytes, source: Random) -> bytes:
    """A number replaced by one that is huge, negative, or none."""
    places = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
    if not places:
        return tokens_put_in(content, source)
    place = source.choice(places)
    return content[:place] + source.choice(NUMBERS) + content[place + 1 :]


def cut_short(content: bytes, source: Random) -> bytes:
    """The beginning alone, or the end."""
    place = source.randrange(len(content) + 1)
    return content[:place] if source.random() < 0.7 else content[place:]


def encoded_otherwise(content: bytes, source: Random) -> bytes:
    """The same text in another encoding, with other line ends, with a mark at its beginning, or packed."""
    text, kind = content.decode("utf-8", "replace"), source.randrange(7)
    if kind == 0:
        return text.encode(source.choice(["utf-16", "utf-16-le", "utf-32", "latin-1"]), "replace")
    if kind == 1:
        return b"\xef\xbb\xbf" + content
    if kind == 2:
        return content.replace(b"\n", source.choice([b"\r\n", b"\r", b"\n\r", "\u2028".encode(), b"\x00", b"\x0b"]))
    if kind == 3:
        return content.replace(b" ", source.choice([b"\xc2\xa0", b"\t", "\u3000".encode(), b""]))
    if kind == 4:
        packed = gzip.compress(content, mtime=0)
        return packed[: source.randrange(len(packed) + 1)]
    if kind == 5:
        return content.upper() if source.random() < 0.5 else text.swapcase().encode()
    return b"\xff\xfe" + content


PLAIN: tuple[Mutation, ...] = (
    bytes_changed, lines_changed, fields_changed, fields_changed, tokens_put_in, numbers_changed, cut_short,
    encoded_otherwise,
)  # fmt: skip


# --- JSON ----------------------------------------------------------------------------------------------------


def paths_in(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [before, *(path for key, each in inner for path in paths_in(each, (*before, key)))]


def put(value: Any, path: Sequence[Any], new: Any) -> Any:
    """The value with `new` in a place; `DROPPED` takes the place away."""
    if not path:
        return new
    found, parent = value, value
    for key in path[:-1]:
        parent = parent[key]
    if new is DROPPED:
        del parent[path[-1]]
    else:
        parent[path[-1]] = new
    return found


DROPPED = object()


def odd_value(old: Any, whole: Any, source: Random) -> Any:
    """Something for the place of a value: odd, dropped, or from another place."""
    kind = source.randrange(8)
    if kind == 0:
        return DROPPED
    if kind == 1:
        return json.loads(json.dumps(_at(whole, source.choice(paths_in(whole)))))
    if kind == 2 and isinstance(old, list):
        return [*old, *old] if source.random() < 0.5 else old[:-1]
    if kind == 3 and isinstance(old, int | float):
        return source.choice([-old, old + 1, old - 1, old * 1000, old + 0.5])
    if kind == 4 and isinstance(old, str):
        return source.choice([old * 2, old[1:], old.upper(), old + "\u0000"])
    return source.choice(VALUES)


def _at(value: Any, path: Sequence[Any]) -> Any:
    for key in path:
        value = value[key]
    return value


def json_changed(content: bytes, source: Random) -> bytes:
    """A value of a JSON text, or of one of its lines, replaced; or a member given twice."""
    lines = content.split(b"\n")
    i = source.choice([i for i, line in enumerate(lines) if line.strip()] or [0])
    try:
        value = json.loads(lines[i])
    except (ValueError, RecursionError):
        return fields_changed(content, source)
    path = source.choice(paths_in(value))
    new = odd_value(_at(value, path), value, source)
    changed = put(value, path, None if new is DROPPED and not path else new)
    lines[i] = json.dumps(changed, ensure_ascii=source.random() < 0.5).encode("utf-8", "surrogatepass")
    if source.random() < 0.1 and lines[i][:1] == b"{" and len(lines[i]) > 2:
        lines[i] = lines[i][:-1] + b", " + lines[i][1:]  # every member twice
    return b"\n".join(lines)


def mutated(content: bytes, source: Random, others: Sequence[bytes] = (), *, as_json: bool = False) -> bytes:
    """One or two changes; now and then the content of another kind of file."""
    if others and source.random() < 0.01:
        return source.choice(others)
    for _ in range(source.choice([1, 1, 1, 2, 3])):
        operator = json_changed if as_json and source.random() < 0.6 else source.choice(PLAIN)
        content = operator(content or b"\n", source)
    return content
