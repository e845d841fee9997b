"""Fragments of one track as other packagers write them: every sample is found."""

from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest

from tests.workers.origin.mp4 import AAC, AVC, box, init
from workers.media import cmaf
from workers.media.boxes import BoxStream
from workers.media.errors import Unreadable
from workers.media.fragments import Subsegment, read_fragment, read_index, read_init, read_moofs

HEADER = init(AVC).replace(box("trex", pack(">6I", 0, 1, 1, 0, 0, 0)), box("trex", pack(">6I", 0, 1, 1, 40, 3, 0x10000)))
DEFAULTS = cmaf.header(HEADER).defaults


def moof(*runs: bytes, time: bytes = box("tfdt", pack(">IQ", 0x01000000, 8_000))) -> bytes:
    return box("moof", box("mfhd", pack(">II", 0, 1)), box("traf", box("tfhd", pack(">II", 0x020000, 1)), time, *runs))


def run(flags: int, samples: int, *fields: int) -> bytes:
    return box("trun", pack(f">II{len(fields)}I", flags, samples, *fields))


def test_samples_of_several_runs_are_all_there() -> None:
    """The first run states where it begins and has the key frame; the second follows it."""
    described = moof(run(0x005, 2, 100, 0), run(0x200, 1, 5))
    result = cmaf.fragment(described, box("mdat", bytes(100)), defaults=DEFAULTS)
    assert [(sample.size, sample.duration, sample.key) for sample in result.samples] == [
        (3, 40, True),
        (3, 40, False),
        (5, 40, False),
    ]
    assert (result.time, result.duration, result.media) == (8_000, 120, 100)
    assert read_fragment(memoryview(described)[8:], read_init(HEADER)).lasts == 120


@pytest.mark.parametrize("begins", [100 + 6, 100 + 4])
def test_samples_that_do_not_follow_each_other_are_refused(begins: int) -> None:
    described = moof(run(0x001, 2, 100), run(0x001, 1, begins))
    if begins == 106:
        assert len(cmaf.fragment(described, box("mdat", bytes(100)), defaults=DEFAULTS).samples) == 3
    else:
        with pytest.raises(Unreadable, match="do not follow"):
            cmaf.fragment(described, box("mdat", bytes(100)), defaults=DEFAULTS)


def test_a_time_is_moved_where_it_has_room() -> None:
    mdat = box("mdat", bytes(10))
    moved = cmaf.fragment(moof(run(0, 1)), mdat, shift=2**40, defaults=DEFAULTS)
    assert moved.time == 8_000 + 2**40
    assert cmaf.fragment(moved.data[: -len(mdat)], mdat, defaults=DEFAULTS).time == moved.time
    short = moof(run(0, 1), time=box("tfdt", pack(">II", 0, 8_000)))
    assert cmaf.fragment(short, mdat, defaults=DEFAULTS).time == 8_000
    for shift in (1, -8_001):
        with pytest.raises(Unreadable):
            cmaf.fragment(short if shift > 0 else moof(run(0, 1)), mdat, shift=shift, defaults=DEFAULTS)


def test_a_header_has_what_its_decoder_is_given() -> None:
    picture, sound = cmaf.header(init(AVC)), cmaf.header(init(AAC))
    assert (picture.codec, picture.configuration, picture.width, picture.height) == ("avc1.64001f", AVC[2], 640, 360)
    assert (sound.codec, sound.configuration) == ("mp4a.40.2", bytes([0x12, 0x10]))
    for other in (init(AVC, AAC), init(("Opus", "dOps", bytes(11)))):
        with pytest.raises(Unreadable):
            cmaf.header(other)


def test_a_box_with_a_size_of_64_bits_is_a_box() -> None:
    large = b"\0\0\0\1mdat" + pack(">Q", 20) + b"data"
    for size in (1, 3, 100):
        stream = BoxStream(most=1000)
        matches = [entry for at in range(0, 60, size) for entry in stream.feed((large + box("free") * 5)[at : at + size])]
        assert matches == [(b"mdat", large), *[(b"free", box("free"))] * 5]


def test_the_index_of_a_file_is_read_in_both_versions() -> None:
    entries = pack(">HH", 0, 2) + pack(">III", 500, 2_000, 0x90000000) + pack(">III", 700, 1_000, 0)
    for version, times in ((0, pack(">II", 1_000, 16)), (1, pack(">QQ", 1_000, 16))):
        index = box("sidx", bytes([version, 0, 0, 0]), pack(">II", 1, 1_000), times, entries)
        begin = 800 + len(index) + 16
        assert read_index(index, begins=800) == [Subsegment(begin, 500, 1.0, 2.0), Subsegment(begin + 500, 700, 3.0, 1.0)]
        for cut in (index[:-8], b"", box("moof"), index.replace(pack(">III", 700, 1_000, 0), pack(">III", 1 << 31, 1_000, 0))):
            with pytest.raises(Unreadable):
                read_index(cut, begins=0)


def test_a_file_without_fragments_has_none(tmp_path: Path) -> None:
    file = tmp_path / "a.m4s"
    for content, result in ((b"", 0), (box("styp"), 0), (moof(run(0, 1)) + box("mdat", bytes(9)), 1)):
        file.write_bytes(content)
        assert len(read_moofs(file, most=1000)) == result
    with pytest.raises(Unreadable):
        read_moofs(file, most=20)
