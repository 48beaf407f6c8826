"""Text that is safe to print: names and values from files may hold escape sequences."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return the text with \uXXXX in place of every character that is not shown as it is.

    Control characters, line breaks, marks that turn the direction of writing, halves of characters:
    this is how JSON writes them, too.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _escape(character) for character in text
    )


def printable_lines(text: str) -> str:
    """Return a text of several lines that are our own; within them, nothing but what is shown."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
