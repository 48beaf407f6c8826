"""Every error that a user can cause, drawn as a tree; the command line prints each as one line.

OaccDepthError
├─ UnreadableFile(OSError)          the file is missing, truncated or not what its name says
├─ UnknownFormat(ValueError)        no reader recognises this path
├─ InvalidLightField(ValueError)    views missing, of different sizes, not a usable grid
├─ InvalidCheckpoint(ValueError)    weights do not fit the network, or are damaged
├─ InvalidOption(ValueError)        a setting that cannot be met
├─ InvalidPrediction(ValueError)    a disparity map that cannot be scored or handed in
├─ DeviceUnavailable(RuntimeError)  a device that is not there, or too small
├─ OutputExists(FileExistsError)    refusing to overwrite
├─ UnwritableOutput(OSError)        the output cannot be written
└─ MissingDependency(ImportError)   an optional package is needed

A message says what is wrong (path and value), what was expected, and what to do. Names and values
in it may come from a file, so it is one line of printable text whatever they hold.
"""

from oaccdepth.printable import printable


class OaccDepthError(Exception):
    """Any error that a user can cause."""

    def __str__(self) -> str:
        return printable(super().__str__())


class UnreadableFile(OaccDepthError, OSError):
    """The file is missing, truncated or not what its name says."""


class UnknownFormat(OaccDepthError, ValueError):
    """No reader recognises this path."""


class InvalidLightField(OaccDepthError, ValueError):
    """Views missing, of different sizes, or not a usable grid."""


class InvalidCheckpoint(OaccDepthError, ValueError):
    """Weights that do not fit the network, or are damaged."""


class InvalidOption(OaccDepthError, ValueError):
    """A setting that cannot be met."""


class InvalidPrediction(OaccDepthError, ValueError):
    """A disparity map that cannot be scored or handed in."""


class DeviceUnavailable(OaccDepthError, RuntimeError):
    """A device that is not there, or too small."""


class OutputExists(OaccDepthError, FileExistsError):
    """Refusing to overwrite."""


class UnwritableOutput(OaccDepthError, OSError):
    """The output cannot be written."""


class MissingDependency(OaccDepthError, ImportError):
    """An optional package is needed."""
