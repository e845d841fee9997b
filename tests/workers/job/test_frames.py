"""Frames between a worker and its hosts: assembled from pieces of any size, and refused when they are invalid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.job.host.frames import MOST, Frame, Garbled, Unpacker, pack

FRAMES: list[Frame] = [
    {"kind": "alive"},
    {"kind": "log", "severity": 1, "message": "ä\n" * 300},
    {"kind": "order", "order": {"a": [None, 1.5]}},
]


@given(st.lists(st.integers(1, 700), max_size=20))
def test_frames_are_decoded_from_any_pieces(cuts: list[int]) -> None:
    stream = b"".join(pack(frame) for frame in FRAMES)
    unpacker, frames = Unpacker(), list[Frame]()
    for cut in [*cuts, len(stream)]:
        frames += unpacker.frames(stream[:cut])
        stream = stream[cut:]
    assert frames == FRAMES


@pytest.mark.parametrize(
    "piece",
    [
        b"\xff\xff\xff\xff",
        (MOST + 1).to_bytes(4),
        b"\0\0\0\2[]",
        b"\0\0\0\2{}",
        b"\0\0\0\3abc",
        b'\0\0\0\x0a{"kind":1}',
        b"\0\0\0\0",
    ],
    ids=ascii,
)
def test_bytes_that_are_no_frame_are_refused(piece: bytes) -> None:
    with pytest.raises(Garbled):
        list(Unpacker().frames(piece))
