"""The command `trelliswork` as a process: Ctrl-C is handled before anything heavy is imported."""

from __future__ import annotations

from trelliswork import ctrl_c


def main() -> int:
    """Run the command line of this process and return its exit status."""
    ctrl_c.install()
    try:
        from trelliswork.cli.main import run

        return run()
    except KeyboardInterrupt:
        ctrl_c.say_interrupted()
        return ctrl_c.STATUS
