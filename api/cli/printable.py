"""Text for a terminal: control characters (escape sequences, line breaks, direction marks) are escaped, as users wrote the text."""

from __future__ import annotations


def printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def printable_lines(text: str) -> str:
    """For a text of several lines."""
    return "\n".join(map(printable, text.splitlines()))
