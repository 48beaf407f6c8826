"""Data blocks and JSON -> the text of one HTML page: style, scripts and data all inside it.

The page loads nothing: its Content-Security-Policy blocks the network and allows only the scripts
that are inlined here, each by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from oaccdepth.files.fields import parse_json
from oaccdepth.files.regular import read_small

MOST_BYTES = 1 << 28  # largest page that is read; ours are a twentieth of it

# Each file may use those above it; inlined, they become one module.
SCRIPTS = (
    "elements.js",
    "blocks.js",
    "scene.js",
    "places.js",
    "state.js",
    "space.js",
    "shaders.js",
    "gl.js",
    "renderer.js",
    "frame.js",
    "colour.js",
    "layers.js",
    "rims.js",
    "hidden.js",
    "points.js",
    "cloud.js",
    "clip.js",
    "stage.js",
    "motion.js",
    "link.js",
    "actions.js",
    "inspector.js",
    "readout.js",
    "controls.js",
    "pointer.js",
    "orbit.js",
    "keys.js",
    "drawing.js",
    "fallback.js",
    "main.js",
)
_IMPORT = re.compile(r"^import\s[^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?(?:const|let|function|class)\b)", re.MULTILINE)


def assemble(meta: dict[str, Any], blocks: dict[str, bytes], title: str) -> str:
    """The whole page. `title` and every text in `meta` are shown as plain text, never as HTML."""
    style, script = _text("style.css"), _script()
    parts = {
        "policy": policy(style, script),
        "title": html.escape(title),
        "style": style,
        "meta": as_json(meta),
        "blocks": "\n".join(_block(name, data) for name, data in blocks.items()),
        "script": script,
    }
    return fill(_text("page.html"), parts)


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy of a page that has this style and script."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {_hash(style)}",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def fill(template: str, parts: dict[str, str]) -> str:
    """A template with its {{placeholders}} filled in."""
    # One pass over the template: inserted text is never searched for placeholders.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def read_blocks(path: Path, prefix: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The JSON of a page, and its data blocks whose names start with `prefix`."""
    text = read_small(path, MOST_BYTES).decode(errors="replace")
    meta = re.search(r'<script type="application/json" id="meta">(.*?)</script>', text)
    found = re.findall(rf' id="data-({re.escape(prefix)}[\w-]+)">([\w+/=]*)</script>', text)
    blocks = {name: base64.b64decode(data) for name, data in found}
    about = parse_json(meta[1]) if meta else {}
    return (about if isinstance(about, dict) else {}), blocks


def overhead() -> int:
    """Bytes of a page without data."""
    parts = (_text("page.html"), _text("style.css"), _script())
    return sum(len(part.encode()) for part in parts)


def as_json(value: Any) -> str:
    """JSON that cannot end the script element around it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _block(name: str, data: bytes) -> str:
    encoded = base64.b64encode(data).decode("ascii")
    return f'<script type="application/octet-stream" id="data-{name}">{encoded}</script>'


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


@cache
def _text(name: str) -> str:
    return (files("oaccdepth.looking.viewer") / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    """All our scripts as one module, without `import` and `export`."""
    return _closed("\n".join(script_of(name) for name in SCRIPTS))


def script_of(name: str) -> str:
    """One of our scripts, ready to follow the scripts that it uses."""
    return _EXPORT.sub("", _IMPORT.sub("", _text(f"js/{name}")))


def _closed(script: str) -> str:
    """The script, with `</script` escaped so that it cannot end its element."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
