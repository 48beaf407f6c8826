"""Removes the user's folders from text in files that people share."""

from __future__ import annotations

import re
from pathlib import PurePath, PureWindowsPath
from typing import Any

# From the start of an absolute path to the colon after it, or to the end of the line: folder names
# may contain spaces, and our messages put a colon after a path.
ABSOLUTE = re.compile(
    r"(?<![\w.~/\\:<-])(?:file://)?(?:/(?=[^\s/])|\\\\|[A-Za-z]:[\\/]|~[\\/])(?:(?!: |\n).)*"
)


def shareable(value: Any) -> Any:
    """Shorten every absolute path, also inside a text, to its last part."""
    if isinstance(value, dict):
        return {key: shareable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shareable(item) for item in value]
    if isinstance(value, PurePath):
        return value.name if value.is_absolute() else value.as_posix()
    return ABSOLUTE.sub(_last_part, value) if isinstance(value, str) else value


def _last_part(match: re.Match[str]) -> str:
    return PureWindowsPath(match[0]).name  # understands both kinds of slashes
