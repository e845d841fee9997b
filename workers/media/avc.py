"""The decoder configuration of H.264, made from the parameter sets within a stream: ISO/IEC 14496-15, 5.3.3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_SEQUENCE, _PICTURE = 7, 8
_MOST: Final = 31
"""The largest number of sequence parameter sets that a configuration can hold."""
_LONGEST: Final = 0xFFFF


def configuration(sample: bytes | memoryview, before: bytes) -> bytes:
    """Return the configuration for a sample whose units begin with lengths of four bytes. It is that of `before`, unless the sample
    has other parameter sets."""
    sets = [bytes(unit) for unit in _units(memoryview(sample)) if unit[0] & 0x1F in (_SEQUENCE, _PICTURE)]
    sequences = [unit for unit in dict.fromkeys(sets) if unit[0] & 0x1F == _SEQUENCE and len(unit) > 3]
    pictures = [unit for unit in dict.fromkeys(sets) if unit[0] & 0x1F == _PICTURE]
    if not sequences or not pictures or all(unit in before for unit in (*sequences, *pictures)):
        return before
    if len(sequences) > _MOST or len(pictures) > 0xFF or max(map(len, sets)) > _LONGEST:
        return before
    begin = bytes((1, *sequences[0][1:4], 0xFF, 0xE0 | len(sequences)))
    return b"".join((begin, *map(_with_length, sequences), bytes((len(pictures),)), *map(_with_length, pictures)))


def _with_length(unit: bytes) -> bytes:
    return len(unit).to_bytes(2) + unit


def _units(data: memoryview) -> Iterator[memoryview]:
    at = 0
    while at + 5 <= len(data):
        size = int.from_bytes(data[at : at + 4])
        if not size or at + 4 + size > len(data):
            return
        yield data[at + 4 : at + 4 + size]
        at += 4 + size
