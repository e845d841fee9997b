"""The error of captions, and how it writes times."""

from __future__ import annotations


class UnreadableCaptions(Exception):
    """Raised when captions cannot be read or shown. The message is a sentence without text of the file."""


def clock(milliseconds: int) -> str:
    """Format a time as WebVTT does: `hh:mm:ss.fff`."""
    seconds, rest = divmod(abs(milliseconds), 1000)
    sign = "-" if milliseconds < 0 else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:03}"
