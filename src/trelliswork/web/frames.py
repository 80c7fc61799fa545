"""Messages between the server and its workers: a length of four bytes, then the bytes."""

from __future__ import annotations

import json
import socket
import struct
from asyncio import StreamReader
from collections.abc import Iterable
from typing import NamedTuple

from trelliswork.data.json_values import Json

_LENGTH, _PART, _COST = struct.Struct("!I"), struct.Struct("!HI"), struct.Struct("!dI")
PIECES = 207  # status of a reply that is not an answer yet


class Reply(NamedTuple):
    """The answer to one call: an HTTP status and JSON."""

    status: int
    body: bytes


def pack(payload: bytes) -> bytes:
    """Return a message with its length before it."""
    return _LENGTH.pack(len(payload)) + payload


def pack_json(message: Json) -> bytes:
    """Pack a message of JSON values."""
    return pack(json.dumps(message).encode())


def pack_calls(model: str, calls: Iterable[bytes]) -> bytes:
    """Pack calls about one model, each as JSON."""
    return pack_replies([Reply(0, model.encode()), *(Reply(0, call) for call in calls)])


def pack_replies(replies: Iterable[Reply]) -> bytes:
    """Pack several replies into one message.

    >>> unpack_replies(pack_replies([Reply(200, b"{}"), Reply(422, b"")])[4:])
    [Reply(status=200, body=b'{}'), Reply(status=422, body=b'')]
    """
    return pack(b"".join(_PART.pack(status, len(body)) + body for status, body in replies))


def unpack_replies(payload: bytes) -> list[Reply]:
    """Unpack the replies of a message, given without its length."""
    replies, place = [], 0
    while place < len(payload):
        status, n = _PART.unpack_from(payload, place)
        place += _PART.size
        replies.append(Reply(status, payload[place : place + n]))
        place += n
    return replies


def pack_call(op: str, model: str, body: Json) -> bytes:
    """Return a question to a model, as JSON.

    Args:
        op: What is asked.
        model: Name of the model.
        body: What is asked about.

    Returns:
        The bytes of the message.
    """
    return json.dumps({"op": op, "model": model, "body": body}).encode()


def pack_pieces(pieces: Iterable[tuple[float, bytes]]) -> Reply:
    """Return the reply to a large question: the calls that it is to be divided into, each with its cost in seconds.

    >>> unpack_pieces(pack_pieces([(0.25, b"{}"), (0.125, b"[]")]).body)
    [(0.25, b'{}'), (0.125, b'[]')]
    """
    return Reply(PIECES, b"".join(_COST.pack(cost, len(call)) + call for cost, call in pieces))


def unpack_pieces(body: bytes) -> list[tuple[float, bytes]]:
    """Unpack the pieces of a large question, each with its cost."""
    pieces, place = [], 0
    while place < len(body):
        cost, n = _COST.unpack_from(body, place)
        place += _COST.size
        pieces.append((cost, body[place : place + n]))
        place += n
    return pieces


def receive(connection: socket.socket) -> bytes | None:
    """Return the next message; None if the other side is gone."""
    head = _exactly(connection, _LENGTH.size)
    return None if head is None else _exactly(connection, _LENGTH.unpack(head)[0])


def _exactly(connection: socket.socket, n: int) -> bytes | None:
    content = bytearray(n)
    view, place = memoryview(content), 0
    while place < n:
        got = connection.recv_into(view[place:])
        if not got:
            return None
        place += got
    return bytes(content)


async def read_frame(reader: StreamReader) -> bytes:
    """Return the next message; `asyncio.IncompleteReadError` if the other side is gone."""
    head = await reader.readexactly(_LENGTH.size)
    return await reader.readexactly(_LENGTH.unpack(head)[0])
