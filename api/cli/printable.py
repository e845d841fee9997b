"""Text for a terminal: control characters (escape sequences, line breaks, direction marks) are escaped, as users wrote the text."""

from __future__ import annotations

from collections.abc import Sequence


def printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def printable_lines(text: str) -> str:
    """For a text of several lines."""
    return "\n".join(map(printable, text.splitlines()))


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table, every column as wide as its longest cell."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in shown) for column in range(len(shown[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]
