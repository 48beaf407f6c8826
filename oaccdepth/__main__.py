"""`python -m oaccdepth`."""

from oaccdepth.cli import main

if __name__ == "__main__":
    main()
