"""Text that is safe to print: names and values from files may hold escape sequences."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return the text with \uXXXX in place of every unprintable character.

    These are control characters, line breaks, marks that change the writing direction, and lone
    surrogates. JSON escapes them in the same way.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _escape(character) for character in text
    )


def printable_lines(text: str) -> str:
    """Like `printable`, but keep the line breaks, which are our own."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
