"""Pushes of streams that change on their way: what a receiver gets can be shown through the change, in sync."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.origin import Body, Origin
from tests.support.rtmp_receiver import RtmpReceiver, Taken, rtmp_receiver
from tests.support.sources.films import Form, film
from tests.support.sources.measure import apart, picture, sound
from tests.workers.pushes.test_rtmp_push import PATIENCE, pushing
from workers.adapters.encoders.rtmp import VIDEO
from workers.media.codecs import configuration


def stream(folder: Path, *forms: Form) -> dict[str, Body]:
    """Segments of MPEG-TS whose time stamps go on, and a playlist that has ended."""
    for number, form in enumerate(forms):
        film(folder / f"{number}.ts", form, "-output_ts_offset", f"{10 + 2 * number}", "-muxdelay", "0", "-muxpreload", "0")
    lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:2", *(f"#EXTINF:2,\n{number}.ts" for number in range(len(forms))), "#EXT-X-ENDLIST"]
    files: dict[str, Body] = {path.name: path.read_bytes() for path in folder.glob("*.ts")}
    return files | {"i.m3u8": "\n".join(lines).encode()}


async def pushed(files: dict[str, Body], receiver: RtmpReceiver) -> str:
    """Push the files and return why the push ended."""
    async with Origin(files) as origin, pushing(f"{origin.url}/i.m3u8", to=receiver.url) as push, asyncio.timeout(PATIENCE):
        return str(await push.ended())


def flv(taken: Taken, path: Path) -> Path:
    tags = []
    for kind, at, data in taken.tags:
        head = bytes([kind]) + len(data).to_bytes(3) + (at & 0xFFFFFF).to_bytes(3) + bytes([at >> 24, 0, 0, 0])
        tags.append(head + data + (len(head) + len(data)).to_bytes(4))
    path.write_bytes(b"FLV\1\5\0\0\0\x09\0\0\0\0" + b"".join(tags))
    return path


async def test_a_picture_of_another_size_is_announced_and_shown(tmp_path: Path) -> None:
    files = stream(tmp_path, Form(seconds=2), Form(seconds=2, size=(240, 180)), Form(seconds=2))
    async with rtmp_receiver() as receiver:
        why = await pushed(files, receiver)
        (taken,) = receiver.taken
    assert "has ended" in why
    headers = [(at, data) for kind, at, data in taken.tags if kind == VIDEO and data[1] == 0]
    assert [at for at, _ in headers] == pytest.approx([0, 2000, 4000], abs=80)
    assert len({data for _, data in headers}) == 2
    made = flv(taken, tmp_path / "taken.flv")
    shown, heard = picture(made), sound(made)
    assert shown.sizes == ((320, 180), (240, 180), (320, 180))
    assert len(shown.flashes) == 3
    assert apart(shown.flashes, heard.beeps) < 0.06


async def test_a_push_begins_anew_where_the_sound_changes(tmp_path: Path) -> None:
    """The next one tells the receiver the new rate and channels."""
    files = stream(tmp_path, Form(seconds=2), Form(seconds=2, sample_rate=44_100, channels=1))
    async with rtmp_receiver() as receiver:
        why = await pushed(files, receiver)
    assert why == "The stream of the Event failed: the rate or the channels of its sound change, so it starts over."


def test_a_configuration_is_made_of_parameter_sets_within_bounds() -> None:
    def sample(*units: bytes) -> bytes:
        return b"".join(len(unit).to_bytes(4) + unit for unit in units)

    sps, other_sps, pps = b"\x67\x64\0\x0aA", b"\x67\x64\0\x0bB", b"\x68\xee"
    first = configuration(sample(sps, pps, b"\x65picture"), b"")
    assert first == b"\1\x64\0\x0a\xff\xe1\0\5" + sps + b"\1\0\2" + pps
    assert configuration(sample(sps, pps), first) == first
    assert configuration(sample(other_sps, pps), first) != first
    many = sample(*(other_sps + bytes([number]) for number in range(40)), pps)
    for wrong in (b"", bytes(4), b"\xff" * 20, sample(sps), sample(pps), sample(sps, pps)[:-1], many):
        assert configuration(wrong, first) == first
