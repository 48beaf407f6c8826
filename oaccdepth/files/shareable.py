"""Text for files that people share: without the folders of the user who made them."""

from __future__ import annotations

import re
from pathlib import PurePath, PureWindowsPath
from typing import Any

# From where an absolute path begins to the colon after it, or the end: a folder's name may hold
# spaces, and our messages put a colon after a path.
ABSOLUTE = re.compile(
    r"(?<![\w.~/\\:<-])(?:file://)?(?:/(?=[^\s/])|\\\\|[A-Za-z]:[\\/]|~[\\/])(?:(?!: |\n).)*"
)


def shareable(value: Any) -> Any:
    """Shorten every absolute path, also within a text, to its last name."""
    if isinstance(value, dict):
        return {key: shareable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shareable(item) for item in value]
    if isinstance(value, PurePath):
        return value.name if value.is_absolute() else value.as_posix()
    return ABSOLUTE.sub(_last_part, value) if isinstance(value, str) else value


def _last_part(match: re.Match[str]) -> str:
    return PureWindowsPath(match[0]).name  # knows both kinds of slashes
