"""Peak memory of this process, measured for each light field if the system allows it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")
RESET_PEAK = "5"  # proc(5): resets the peak resident set size to the current size


class PeakMemory:
    """Peak resident set size since this object was created; on some systems, of the whole run."""

    def __init__(self) -> None:
        try:
            CLEAR.write_text(RESET_PEAK)
        except OSError:  # not Linux, or not allowed: use the peak of the whole run
            return

    def read(self) -> int | None:
        """Return the peak in bytes; None if the system does not provide it."""
        try:
            found = re.search(r"VmHWM:\s+(\d+) kB", STATUS.read_text(encoding="ascii"))
        except OSError:
            return _peak_of_whole_run()
        return int(found[1]) * 1024 if found else _peak_of_whole_run()


def _peak_of_whole_run() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, others kB
