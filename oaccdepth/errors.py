"""Every error that a user can cause, drawn as a tree; the command line prints each as one line.

OaccDepthError
├─ UnreadableFile(OSError)          the file is missing, truncated or not what its name says
├─ UnknownFormat(ValueError)        no reader recognises this path
├─ InvalidLightField(ValueError)    views missing, of different sizes, not a usable array
├─ InvalidCheckpoint(ValueError)    weights do not fit the network, or are damaged
├─ InvalidOption(ValueError)        an option with a value that it cannot have
├─ InvalidPrediction(ValueError)    a disparity map that cannot be scored or submitted
├─ DeviceUnavailable(RuntimeError)  a device that is missing, or has too little memory
├─ OutputExists(FileExistsError)    files exist already and are not overwritten
├─ UnwritableOutput(OSError)        the output cannot be written
└─ MissingDependency(ImportError)   an optional package is needed

A message says what is wrong (path and value), what was expected, and what to do. Names and values
in it may come from a file, so it is always made one line of printable text.
"""

from collections.abc import Iterable

from oaccdepth.printable import printable


def one_of(names: Iterable[str]) -> str:
    """'a, b or c', for messages."""
    *first, last = names
    return f"{', '.join(first)} or {last}"


# NumPy and CUDA raise their own exceptions; OpenCV, MPS, cuDNN and oneDNN only have a message.
OUT_OF_MEMORY = (
    *("out of memory", "alloc_failed", "can't allocate memory", "not enough memory"),
    *("insufficient memory", "could not create a primitive"),
    *("cannot allocate memory", "failed to map segment"),  # while a library is loaded
)
ADVICE_ON_MEMORY = "not enough memory. Close other programs, or give fewer or smaller views."


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether a library has run out of memory, in RAM or on a device."""
    while error is not None:
        words = str(error).lower()
        if isinstance(error, MemoryError) or any(known in words for known in OUT_OF_MEMORY):
            return True
        error = error.__context__  # the error before it
    return False


class OaccDepthError(Exception):
    """Any error that a user can cause."""

    def __str__(self) -> str:
        return printable(super().__str__())


class UnreadableFile(OaccDepthError, OSError):
    """The file is missing, truncated or not what its name says."""


class UnknownFormat(OaccDepthError, ValueError):
    """No reader recognises this path."""


class InvalidLightField(OaccDepthError, ValueError):
    """Views missing, of different sizes, or not a usable array."""


class InvalidCheckpoint(OaccDepthError, ValueError):
    """Weights that do not fit the network, or are damaged."""


class InvalidOption(OaccDepthError, ValueError):
    """An option with a value that it cannot have."""


class InvalidPrediction(OaccDepthError, ValueError):
    """A disparity map that cannot be scored or submitted."""


class DeviceUnavailable(OaccDepthError, RuntimeError):
    """A device that is missing, or has too little memory."""


class OutputExists(OaccDepthError, FileExistsError):
    """Files exist already and are not overwritten."""


class UnwritableOutput(OaccDepthError, OSError):
    """The output cannot be written."""


class MissingDependency(OaccDepthError, ImportError):
    """An optional package is needed."""
