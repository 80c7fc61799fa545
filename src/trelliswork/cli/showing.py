"""Progress of training as a command shows it."""

from __future__ import annotations

from trelliswork.cli.messages import Shown, progress_shown
from trelliswork.training.progress import BarProgress, LineProgress, Progress

SECONDS = 5.0  # between lines about an epoch


def progress_for(*, quiet: bool = False) -> Progress:
    """A bar on a terminal, else a message for each epoch, and within it if --progress asks for that."""
    if quiet:
        return Progress()
    how = progress_shown()
    return BarProgress() if how is Shown.bar else LineProgress(within=SECONDS if how is Shown.lines else None)
