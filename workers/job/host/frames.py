"""Frames of the channel between a worker and a step's process: JSON preceded by its length.

The channel is not standard output, so that output of a step cannot be taken for a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic_core import from_json, to_json

Frame = Mapping[str, Any]
"""A message. `kind` is its type. To the process: settings, order, cancel, alive, answer. From it: ready, progress, log, stale,
ended, and the kinds of questions."""

MOST: Final = 64 * 1024 * 1024
HEAD: Final = 4


class Garbled(Exception):
    """Raised when the bytes are not a frame."""


def pack(frame: Frame) -> bytes:
    body = to_json(frame)
    if len(body) > MOST:
        raise Garbled
    return len(body).to_bytes(HEAD) + body


def length(head: bytes) -> int:
    size = int.from_bytes(head)
    if size > MOST:
        raise Garbled
    return size


def unpack(body: bytes) -> Frame:
    try:
        frame = from_json(body)
    except ValueError:
        raise Garbled from None
    if not isinstance(frame, dict) or not isinstance(frame.get("kind"), str):
        raise Garbled
    return frame


class Unpacker:
    """Assembles frames from pieces of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def frames(self, piece: bytes) -> Iterator[Frame]:
        self._buffer += piece
        while len(self._buffer) >= HEAD and len(self._buffer) >= (end := HEAD + length(bytes(self._buffer[:HEAD]))):
            body = bytes(self._buffer[HEAD:end])
            del self._buffer[:end]
            yield unpack(body)
