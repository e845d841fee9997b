"""AAC as a stream of frames that state their own length: ADTS, ISO/IEC 13818-7, 6.2. Such streams can be concatenated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from workers.media.errors import Unreadable

SAMPLES: Final = 1024
"""The number of samples in a frame."""
_HEAD: Final = 7


def frames(stream: bytes) -> Iterator[bytes]:
    """Yield the frames of a stream. Raise `Unreadable` if it is not such a stream."""
    at = 0
    while at < len(stream):
        head = stream[at : at + _HEAD]
        size = (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5 if len(head) == _HEAD else 0
        if size < _HEAD or head[0] != 0xFF or head[1] & 0xF6 != 0xF0 or at + size > len(stream):
            raise Unreadable("its frames of sound are broken")
        yield stream[at : at + size]
        at += size
