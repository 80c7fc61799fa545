"""Clients that send one request after another over connections that are kept, and how long each took.

    python -m benchmarks.load http://127.0.0.1:8000/v1/predict bodies.json --clients 32 --seconds 5

`bodies.json` is a list of JSON bodies, which the clients send in turn. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from urllib.parse import urlsplit


async def client(address: str, requests: list[bytes], first: int, until: float, found: list[float]) -> int:
    """Send requests until the time is over; how many were not answered with 200."""
    parts = urlsplit(address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    bad, i = 0, first
    while time.perf_counter() < until:
        began = time.perf_counter()
        writer.write(requests[i % len(requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        await reader.readexactly(length)
        found.append(time.perf_counter() - began)
        bad += not head.startswith(b"HTTP/1.1 200")
        i += 1
    writer.close()
    return bad


def requests_of(address: str, bodies: list[object]) -> list[bytes]:
    """Whole requests as bytes."""
    parts, found = urlsplit(address), []
    for body in bodies:
        raw = json.dumps(body).encode()
        lines = [
            f"POST {parts.path} HTTP/1.1", f"Host: {parts.netloc}", "Content-Type: application/json",
            f"Content-Length: {len(raw)}", "", "",
        ]  # fmt: skip
        found.append("\r\n".join(lines).encode() + raw)
    return found


async def load(address: str, bodies: list[object], clients: int, seconds: float) -> dict[str, float]:
    """Requests a second, and times in milliseconds that half and 99% of them stay under."""
    requests, found = requests_of(address, bodies), list[float]()
    began = time.perf_counter()
    steps = [client(address, requests, i * 37, began + seconds, found) for i in range(clients)]
    bad = sum(await asyncio.gather(*steps))
    taken = time.perf_counter() - began
    ordered = sorted(found)
    return {
        "clients": clients, "per_second": len(found) / taken, "p50": 1000 * statistics.median(ordered),
        "p99": 1000 * ordered[min(int(0.99 * len(ordered)), len(ordered) - 1)], "bad": bad,
    }  # fmt: skip


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("bodies")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args()
    with open(given.bodies, encoding="utf-8") as file:
        bodies = json.load(file)
    print(json.dumps(asyncio.run(load(given.address, bodies, given.clients, given.seconds))))


if __name__ == "__main__":
    main()
