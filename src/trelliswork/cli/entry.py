"""The command `trelliswork` as a process: Ctrl-C and SIGTERM are handled before anything else is imported."""

from __future__ import annotations

import gc

from trelliswork import ctrl_c

OBJECTS = 200_000  # made before garbage is looked for: with the 700 of Python, that is a fifth of a small command


def main() -> int:
    """Run the command line of this process and return its exit status."""
    ctrl_c.install()
    gc.set_threshold(OBJECTS)
    try:
        from trelliswork.cli.main import run

        return run()
    except KeyboardInterrupt:
        ctrl_c.say_interrupted()
        return ctrl_c.status()
    finally:
        ctrl_c.uninstall()
        gc.freeze()  # Python looks for garbage once more at its end, for a tenth of a second with a network
