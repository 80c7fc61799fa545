"""The command `trelliswork` as a process: Ctrl-C is handled before anything else is imported."""

from __future__ import annotations

import gc
import signal

from trelliswork import ctrl_c

OBJECTS = 20_000  # made before garbage is looked for: with Python's own 700, that is a fifth of a small command


def main() -> int:
    """Run the command line of this process and return its exit status."""
    ctrl_c.install()
    gc.set_threshold(OBJECTS)
    try:
        from trelliswork.cli.main import run

        return run()
    except KeyboardInterrupt:
        ctrl_c.say_interrupted()
        return ctrl_c.STATUS
    finally:
        if signal.getsignal(signal.SIGINT) is ctrl_c.interrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is left to be undone
