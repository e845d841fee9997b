"""What is wrong with captions, in sentences."""

from __future__ import annotations


class UnreadableCaptions(Exception):
    """The captions cannot be read or shown. The message is a sentence without text of the file."""


def clock(milliseconds: int) -> str:
    """`hh:mm:ss.fff`, as WebVTT writes times."""
    seconds, rest = divmod(abs(milliseconds), 1000)
    sign = "-" if milliseconds < 0 else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:03}"
