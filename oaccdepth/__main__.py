"""The installed command, and `python -m oaccdepth`: heeds signals, then imports the rest."""

from oaccdepth.files.signals import leave_at_once


def main() -> None:
    """Entry point of the installed command."""
    leave_at_once()  # the import takes a second
    from oaccdepth.cli import main

    try:
        main()
    finally:
        leave_at_once()


if __name__ == "__main__":
    main()
