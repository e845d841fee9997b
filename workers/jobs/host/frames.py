"""Frames of the channel between a worker and a step's process: JSON after its length.

It is not standard output, so that what a step prints cannot be taken for a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic_core import from_json, to_json

Frame = Mapping[str, Any]
"""`kind` is the type of message. To the process: settings, order, cancel, alive, fetched. From it: ready, progress, log,
fetch, ended."""

MOST: Final = 64 * 1024 * 1024
HEAD: Final = 4


class Garbled(Exception):
    """The bytes are not a frame."""


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
    """Puts frames together from pieces of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def frames(self, piece: bytes) -> Iterator[Frame]:
        self._buffer += piece
        while len(self._buffer) >= HEAD and len(self._buffer) >= (end := HEAD + length(bytes(self._buffer[:HEAD]))):
            body = bytes(self._buffer[HEAD:end])
            del self._buffer[:end]
            yield unpacked(body)
