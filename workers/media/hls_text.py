"""Attributes and numbers of HLS playlists (RFC 8216, 4.2), read in a time that the length of the line bounds."""

from __future__ import annotations

from re import compile as regex
from typing import Final

from domain.kernel.iso_8601 import moment_of

LONGEST_LINE: Final = 16_384
"""Characters of a line that is read: a tag with attributes, or an address. Other tags may be longer."""
_ATTRIBUTE: Final = regex(r'\s*([A-Z0-9-]{1,64})=(?:"([^"]*)"|([^",\s]*))\s*(?:,|$)')
_LATEST: Final = 32_503_680_000.0
"""The year 3000. Durations are added to what is told."""
_WHOLE: Final = regex(r"[0-9]{1,18}")


class LongLine(Exception):
    """A line is longer than any that is needed."""


def attributes(line: str) -> dict[str, str]:
    """Of a tag, without quotes. What is no attribute is left out, up to the next comma. Raises `LongLine`."""
    text = within(line).partition(":")[2]
    said: dict[str, str] = {}
    at = 0
    while at < len(text):
        found = _ATTRIBUTE.match(text, at)
        if found is not None:
            said[found[1]] = found[2] if found[2] is not None else found[3]
        after = found.end() if found is not None else text.find(",", at) + 1
        at = after if after > at else len(text)
    return said


def within(line: str) -> str:
    """The line. Raises `LongLine`."""
    if len(line) > LONGEST_LINE:
        raise LongLine(f"a line of it is longer than {LONGEST_LINE} characters")
    return line


def whole(text: str) -> int | None:
    """A number without a sign, of 18 digits at most. None: it is none."""
    return int(text) if _WHOLE.fullmatch(text.strip()) else None


def time_of_day(text: str) -> float | None:
    """Seconds since 1970. None: it cannot be read, or is not between 1970 and 3000."""
    moment = moment_of(text)
    seconds = -1.0 if moment is None else moment.timestamp()
    return seconds if 0 <= seconds < _LATEST else None
