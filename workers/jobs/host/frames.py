"""The channel between a worker and its step hosts: JSON, with its length before it. Issue 7, point 4.

Not a pipe of text, so that what a step prints cannot be taken for a word of the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic_core import from_json, to_json

Frame = Mapping[str, Any]
"""`kind` says what it is. To the host: settings, order, cancel, alive. From it: ready, progress, log, ended."""

MOST: Final = 64 * 1024 * 1024
HEAD: Final = 4


class Garbled(Exception):
    """What came is no frame."""


def packed(frame: Frame) -> bytes:
    body = to_json(frame)
    if len(body) > MOST:
        raise Garbled
    return len(body).to_bytes(HEAD) + body


def length(head: bytes) -> int:
    size = int.from_bytes(head)
    if size > MOST:
        raise Garbled
    return size


def unpacked(body: bytes) -> Frame:
    try:
        frame = from_json(body)
    except ValueError:
        raise Garbled from None
    if not isinstance(frame, dict) or not isinstance(frame.get("kind"), str):
        raise Garbled
    return frame


class Unpacker:
    """Frames out of pieces of any size."""

    def __init__(self) -> None:
        self._held = bytearray()

    def frames(self, piece: bytes) -> Iterator[Frame]:
        self._held += piece
        while len(self._held) >= HEAD and len(self._held) >= (end := HEAD + length(bytes(self._held[:HEAD]))):
            body = bytes(self._held[HEAD:end])
            del self._held[:end]
            yield unpacked(body)
