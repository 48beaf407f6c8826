"""The package's version, on its own so that every module may know it."""

__version__ = "0.1.0"
