"""Caption data of pictures: found in every form that a picture has, and robust against any bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.media.captions.a53 import CaptionFinder, Triple, caption_data

START = b"\x00\x00\x00\x01"
PICTURE = b"\x65\x88\x80" + bytes(40)


def parity(byte: int) -> int:
    return byte | 0x80 if byte.bit_count() % 2 == 0 else byte


def pairs(*codes: int, field: int = 0) -> list[Triple]:
    return [Triple(field, parity(first), parity(second)) for first, second in zip(codes[::2], codes[1::2], strict=True)]


def message(triples: Sequence[Triple]) -> bytes:
    body = b"".join(bytes((0xFC | each.type, each.first, each.second)) for each in triples)
    return b"GA94\x03" + bytes((0xC0 | len(triples), 0xFF)) + body + b"\xff"


def sei(triples: Sequence[Triple]) -> bytes:
    """Return the payload of a NAL unit, after another message of 300 bytes, with bytes that prevent start codes."""
    text = b"\xb5\x00\x31" + message(triples)
    plain = b"\x05\xff\x2d" + bytes(300) + bytes((4, len(text))) + text + b"\x80"
    safe = bytearray()
    for byte in plain:
        if safe[-2:] == b"\x00\x00" and byte <= 3:
            safe.append(3)
        safe.append(byte)
    return bytes(safe)


def h264(triples: Sequence[Triple]) -> list[bytes]:
    return [b"\x09\xf0", b"\x06" + sei(triples), PICTURE]


def hevc(triples: Sequence[Triple]) -> list[bytes]:
    return [b"\x46\x01\x10", b"\x4e\x01" + sei(triples), b"\x26\x01" + PICTURE]


def mpeg2(triples: Sequence[Triple]) -> bytes:
    return b"\x00\x00\x01\x00" + bytes(4) + b"\x00\x00\x01\xb2" + message(triples) + b"\x00\x00\x01\x01" + PICTURE


HELLO = pairs(0x14, 0x20, 0x14, 0x70, *b"HELLO ", 0x14, 0x2F)
ZEROES = [Triple(2, 0, 0), Triple(2, 0, 1), Triple(3, 0, 0)]


@pytest.mark.parametrize("triples", [HELLO, ZEROES, [*HELLO, *ZEROES]], ids=["text", "zeroes", "both"])
@pytest.mark.parametrize("codec", ["h264", "hevc"])
def test_nal_units_with_lengths_and_with_start_codes_give_the_same(codec: str, triples: Sequence[Triple]) -> None:
    units = {"h264": h264, "hevc": hevc}[codec](triples)
    for size in (1, 2, 4):
        fits = [unit for unit in units if len(unit) < 256**size]
        whole = b"".join(len(unit).to_bytes(size, "big") + unit for unit in fits)
        assert list(caption_data(whole, codec, length_size=size)) == (triples if len(fits) == len(units) else [])
    assert list(caption_data(b"".join(START + unit for unit in units), codec, length_size=0)) == triples
    assert list(caption_data(b"".join(START[1:] + unit for unit in units), codec, length_size=0)) == triples


def test_user_data_of_mpeg_2() -> None:
    assert list(caption_data(mpeg2(HELLO), "mpeg2video")) == HELLO
    assert list(caption_data(mpeg2(HELLO) + mpeg2(ZEROES), "mpeg2video")) == [*HELLO, *ZEROES]


def test_what_is_not_valid_is_left_out() -> None:
    units = h264(HELLO)
    units[1] = units[1].replace(b"\xfc", b"\xf8")
    assert caption_data(b"".join(START + unit for unit in units), "h264", length_size=0) == []
    assert not caption_data(mpeg2(HELLO), "vp9")
    assert not caption_data(b"", "h264")


@pytest.mark.parametrize(
    ("triples", "channels"),
    [
        (HELLO, ("CC1",)),
        (pairs(0x1C, 0x25, 0x1C, 0x2D, *b"HELLO "), ("CC2",)),
        (pairs(0x15, 0x26, *b"HI", field=1), ("CC3",)),
        (pairs(0x1D, 0x29, *b"HI", field=1), ("CC4",)),
        (HELLO + pairs(0x15, 0x26, *b"HI", field=1), ("CC1", "CC3")),
        (pairs(0x14, 0x20, 0x11, 0x37), ("CC1",)),
        (pairs(0x14, 0x2A, *b"HI"), ()),
        (pairs(0x14, 0x20, 0x14, 0x2C, 0, 0, 0x11, 0x20), ()),
        (pairs(*b"HI"), ()),
        (pairs(0x15, 0x26, 0x01, 0x03, *b"NEWS", 0x0F, 0x20, field=1), ()),
        (pairs(0x15, 0x26, 0x01, 0x03, *b"NEWS", 0x15, 0x26, *b"HI", field=1), ("CC3",)),
    ],
    ids=["CC1", "CC2", "CC3", "CC4", "two", "symbol", "text mode", "no text", "no mode", "programme", "after programme"],
)
def test_channels_count_where_their_captions_have_text(triples: Sequence[Triple], channels: tuple[str, ...]) -> None:
    finder = CaptionFinder()
    for triple in triples:
        finder.take([triple])
    assert finder.services() == (channels, ())
    assert finder.units == len(triples)


def packet(*blocks: tuple[int, bytes]) -> list[Triple]:
    body = b""
    for service, data in blocks:
        head = bytes((service << 5 | len(data),)) if service < 7 else bytes((0xE0 | len(data), service))
        body += head + data
    body += bytes(len(body) % 2 == 0)
    whole = bytes(((len(body) + 1) // 2,)) + body
    return [Triple(2 if at else 3, whole[at], whole[at + 1]) for at in range(0, len(whole), 2)]


@pytest.mark.parametrize(
    ("blocks", "services"),
    [
        ([(1, b"\x03HELLO")], (1,)),
        ([(1, b"\x98ABCDEF")], ()),
        ([(1, b"\x98ABCDEF\x91xyz\x97wxyzHI")], (1,)),
        ([(1, b"\x8a\xff\x00\x0d"), (2, b"HI"), (9, b"HI")], (2, 9)),
        ([(1, b"\x18\x30\x42\x10\x30")], ()),
    ],
    ids=["text", "a window", "after commands", "several", "parameters"],
)
def test_services_count_where_they_have_text(blocks: list[tuple[int, bytes]], services: tuple[int, ...]) -> None:
    finder = CaptionFinder()
    for triple in packet(*blocks):
        finder.take([triple])
    assert finder.services() == ((), services)


def test_an_interrupted_packet_is_dropped() -> None:
    finder = CaptionFinder()
    finder.take(packet((1, b"HELLO HELLO"))[:2])
    finder.take(packet((2, b"HI")))
    assert finder.services() == ((), (2,))


@given(st.binary(max_size=400), st.sampled_from(["h264", "hevc", "mpeg2video"]), st.sampled_from([0, 1, 2, 4]))
def test_no_bytes_break_it(data: bytes, codec: str, size: int) -> None:
    finder = CaptionFinder()
    for begin in (b"", b"\x06\x04\xff\xb5\x00\x31GA94\x03", b"\x4e\x01\x04\x50\xb5\x00\x31GA94\x03", b"\x00\x00\x01\xb2GA94\x03"):
        whole = begin + data
        length = (len(whole) % 256**size).to_bytes(size, "big") if size else b"\x00\x00\x01"
        finder.take(caption_data(length + whole, codec, length_size=size))
    assert all(1 <= service <= 63 for service in finder.services().services)


@given(st.lists(st.builds(Triple, st.integers(0, 3), st.integers(0, 255), st.integers(0, 255)), max_size=200))
def test_no_triples_break_it(triples: list[Triple]) -> None:
    finder = CaptionFinder()
    finder.take(triples)
    result = finder.services()
    assert set(result.channels) <= {"CC1", "CC2", "CC3", "CC4"}


def test_work_is_bounded_by_the_length() -> None:
    """Each input is a megabyte that could cost the square of its length, or millions of triples."""
    unit = b"\x06\x04\x10\xb5\x00\x31GA94\x03\xc1\xff\xfc\x80\x80\xff\x80"
    many = b"".join(START[1:] + unit for _ in range(50_000))
    assert len(caption_data(many, "h264", length_size=0)) == 1_024
    lengths = b"".join(struct.pack(">I", len(unit)) + unit for _ in range(50_000))
    assert len(caption_data(lengths, "h264")) == 1_024
    empty = bytes(500_000) + b"GA94\x03"
    assert not caption_data(empty, "h264")
    assert not caption_data(b"\x00\x00\x01" * 300_000 + b"GA94\x03", "hevc", length_size=0)
    assert not caption_data(START + b"\x06" + b"\xff" * 900_000 + b"GA94\x03", "h264", length_size=0)


def test_the_helper_of_these_tests_prevents_start_codes() -> None:
    assert all(START[1:] not in unit for unit in h264(ZEROES))
    assert any(pair == (0, 0) for pair in pairwise(h264(ZEROES)[1]))
