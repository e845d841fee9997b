"""A stream of CMAF as it arrives: the bytes are cut into an initialization section and fragments, regardless of the pieces in which
they arrive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from workers.media.boxes import LONGEST_HEAD, has_head, head
from workers.media.errors import Unreadable

_MOST_BUFFERED: Final = 1024 * 1024
"""The largest size in bytes of a box that is buffered until it is complete."""
_BUFFERED: Final = (b"ftyp", b"moov", b"moof")
_IGNORED: Final = (b"styp", b"sidx", b"prft", b"free", b"skip", b"mfra", b"emsg", b"uuid", b"ssix", b"pdin", b"meta")


@dataclass(frozen=True, slots=True)
class StreamPiece:
    """A part of the stream. `init` is a whole initialization section, `moof` a whole box. `data` belongs to the `mdat` after it,
    which `done` ends."""

    kind: Literal["init", "moof", "data", "done"]
    data: bytes = b""


class FragmentStream:
    """Takes bytes, and yields pieces. Anything but fragmented MP4 raises `Unreadable`."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._buffer = bytearray()
        self._type = b""
        self._remaining = 0
        """The number of bytes of the current box that are still to arrive."""
        self._box = bytearray()
        self._ftyp = b""
        self._moof = False
        self.final = False
        """True if the encoder has said that nothing follows: by a box `mfra`, as in DASH-IF's ingest."""

    def take(self, data: bytes) -> Iterator[StreamPiece]:
        self._buffer += data
        while self._buffer:
            if self._remaining:
                yield from self._passed_on()
                continue
            if not self._begin_box():
                return

    @property
    def clean(self) -> bool:
        """True if the stream may end here."""
        return not self._buffer and not self._remaining and not self._moof

    def _passed_on(self) -> Iterator[StreamPiece]:
        taken = bytes(self._buffer[: self._remaining])
        del self._buffer[: self._remaining]
        self._remaining -= len(taken)
        if self._type == b"mdat":
            yield StreamPiece("data", taken)
            if not self._remaining:
                self._moof = False
                yield StreamPiece("done")
        elif self._type in _BUFFERED:
            self._box += taken
            if not self._remaining:
                yield from self._whole_box()

    def _begin_box(self) -> bool:
        """Start the next box. Return False if its head is not complete."""
        if not has_head(self._buffer):
            return False
        size, kind, _ = head(bytes(self._buffer[:LONGEST_HEAD]))
        if kind == b"mdat":
            if not self._moof or size > self._most:
                raise Unreadable("there is media data outside a fragment, or too much of it")
        elif kind in _BUFFERED or kind in _IGNORED:
            if size > _MOST_BUFFERED:
                raise Unreadable("a box is too large")
            if self._moof:
                raise Unreadable("a fragment has no media data")
        else:
            raise Unreadable("a box has a type that live streams do not have")
        self._type, self._remaining, self._box = kind, size, bytearray()
        self.final = self.final or kind == b"mfra"
        return True

    def _whole_box(self) -> Iterator[StreamPiece]:
        box = bytes(self._box)
        self._box = bytearray()
        match self._type:
            case b"ftyp":
                self._ftyp = box
            case b"moov":
                yield StreamPiece("init", self._ftyp + box)
            case _:
                self._moof = True
                yield StreamPiece("moof", box)
