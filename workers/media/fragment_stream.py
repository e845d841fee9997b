"""CMAF as it comes: a stream of bytes is cut into an initialization section and fragments, whatever pieces it arrives in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from workers.media.boxes import LONGEST_HEAD, has_head, head
from workers.media.errors import Unreadable

_MOST_HELD: Final = 1024 * 1024
"""Bytes of a box that is kept until all of it is there."""
_KEPT: Final = (b"ftyp", b"moov", b"moof")
_IGNORED: Final = (b"styp", b"sidx", b"prft", b"free", b"skip", b"mfra", b"emsg", b"uuid", b"ssix", b"pdin", b"meta")


@dataclass(frozen=True, slots=True)
class Piece:
    """`init` is a whole initialization section, `moof` a whole box. `data` belongs to the `mdat` after it, which `done` ends."""

    kind: Literal["init", "moof", "data", "done"]
    data: bytes = b""


class FragmentStream:
    """Takes bytes, gives what they are. Raises `Unreadable` for what is not fragmented MP4."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._held = bytearray()
        self._type = b""
        self._left = 0
        """Bytes of the present box that are still to come, where it is not held."""
        self._box = bytearray()
        self._ftyp = b""
        self._moof = False
        self.final = False
        """Whether the encoder has said that nothing comes after it: by a box `mfra`, as DASH-IF's ingest has it."""

    def take(self, data: bytes) -> Iterator[Piece]:
        self._held += data
        while self._held:
            if self._left:
                yield from self._passed_on()
                continue
            if not self._begins():
                return

    @property
    def clean(self) -> bool:
        """Whether it may end here."""
        return not self._held and not self._left and not self._moof

    def _passed_on(self) -> Iterator[Piece]:
        taken = bytes(self._held[: self._left])
        del self._held[: self._left]
        self._left -= len(taken)
        if self._type == b"mdat":
            yield Piece("data", taken)
            if not self._left:
                self._moof = False
                yield Piece("done")
        elif self._type in _KEPT:
            self._box += taken
            if not self._left:
                yield from self._kept()

    def _begins(self) -> bool:
        """Whether the head of the next box is there."""
        if not has_head(self._held):
            return False
        size, kind, _ = head(bytes(self._held[:LONGEST_HEAD]))
        if kind == b"mdat":
            if not self._moof or size > self._most:
                raise Unreadable("there is media data outside a fragment, or too much of it")
        elif kind in _KEPT or kind in _IGNORED:
            if size > _MOST_HELD:
                raise Unreadable("a box is too large")
            if self._moof:
                raise Unreadable("a fragment has no media data")
        else:
            raise Unreadable("a box is of no type that a live stream has")
        self._type, self._left, self._box = kind, size, bytearray()
        self.final = self.final or kind == b"mfra"
        return True

    def _kept(self) -> Iterator[Piece]:
        box = bytes(self._box)
        self._box = bytearray()
        match self._type:
            case b"ftyp":
                self._ftyp = box
            case b"moov":
                yield Piece("init", self._ftyp + box)
            case _:
                self._moof = True
                yield Piece("moof", box)
