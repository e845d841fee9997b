"""Text for a terminal: control characters in texts of users (escape sequences, line breaks, direction marks) are escaped."""

from __future__ import annotations

from collections.abc import Sequence


def printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else character.encode("unicode_escape").decode() for character in text)


def printable_lines(text: str) -> str:
    """Escape the control characters of a text, except for its line breaks."""
    return "\n".join(map(printable, text.splitlines()))


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table. Every column is as wide as its longest cell."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in shown) for column in range(len(shown[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]
