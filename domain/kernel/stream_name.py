"""The name of an aggregate's stream: its kind, a colon, and its key."""

from __future__ import annotations

from typing import NamedTuple, Self


class StreamName(NamedTuple):
    """A stream name, `event:0f1e…`, in its two parts."""

    kind: str
    key: str

    @classmethod
    def read(cls, text: str) -> Self:
        kind, _, key = text.partition(":")
        return cls(kind, key)

    @staticmethod
    def bounds(kind: str) -> tuple[str, str]:
        """Return two texts between which all streams of a kind sort: at or after the first, and before the second."""
        return f"{kind}:", f"{kind};"
