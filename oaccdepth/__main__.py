"""The installed command, and `python -m oaccdepth`: handles signals, then imports the rest."""

import atexit

from oaccdepth.files.signals import ignore, leave_at_once, leave_if_stopped


def main() -> None:
    """Entry point of the installed command."""
    leave_at_once()  # the import takes a second
    atexit.register(ignore)  # the work is done, and Python's cleanup would let a signal kill us
    from oaccdepth.cli import main

    try:
        main()
    except SystemExit as end:
        leave_if_stopped(end.code)
        raise
    finally:
        leave_at_once()


if __name__ == "__main__":
    main()
