"""`trelliswork serve` as a process of its own, which tests start, stop and kill."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

ADDRESS = re.compile(r"http://[^/\s]+/")


class Server:
    """A server of some models; `teaching` is the folder of what is taught."""

    def __init__(self, folders: Iterable[Path], teaching: Path, port: int = 0) -> None:
        self.command = [sys.executable, "-m", "trelliswork", "serve", *map(str, folders), "--teach", str(teaching)]
        self.port = port
        self.start()

    def start(self) -> None:
        """Start it, at the same port as before, and wait until it answers."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [*self.command, "--port", str(self.port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment,
        )  # fmt: skip
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        match = ADDRESS.search(line)
        assert match is not None, line + self.process.stderr.read()
        self.address = match[0]
        self.port = int(self.address.rstrip("/").rpartition(":")[2])
        for stream in (self.process.stdout, self.process.stderr):  # nobody reads on, and a full pipe would stop it
            threading.Thread(target=stream.read, daemon=True).start()

    def stop(self) -> None:
        """Ask it to stop, as SIGTERM does."""
        self.process.terminate()
        self.process.wait(timeout=120)

    def kill(self) -> None:
        """End it without a chance to tidy up."""
        self.process.kill()
        self.process.wait(timeout=120)
