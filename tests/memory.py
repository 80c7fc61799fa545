"""How much memory a process has taken.

`ru_maxrss` does not do: a process that is started takes over the peak of the one that started it.
"""

from __future__ import annotations

from pathlib import Path


def peak_megabytes() -> float:
    """The most memory that this process has held since it began."""
    status = Path("/proc/self/status").read_text("utf-8")
    return next(float(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:"))
