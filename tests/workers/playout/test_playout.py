"""Playlists that an encoder plays, as they arrive at a real server: the content and the time of each decoded frame."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from domain.composition.values import Item
from tests.contract.encoder.conftest import client, receiver
from tests.contract.encoder.ffmpeg_stage import children, ffmpeg_encoder, ffmpeg_plan
from tests.projections.log.helpers import until
from tests.support.playout import Shelf, item
from tests.support.receiver import Receiver
from tests.support.sources.numbered_frames import film, numbers, probed, tool
from workers.adapters.encoders.ffmpeg import FfmpegEncoder, RunningFfmpeg
from workers.adapters.encoders.upcoming_items import PlayoutPatience
from workers.adapters.outbound_http import GuardedClient
from workers.playout.programme import PlayoutProgramme
from workers.ports.playout import OpenedItem, PlayoutStatistics

__all__ = ["client", "receiver"]
PATIENCE = 90.0
RATE = 25
STEADY = PlayoutPatience(late=30.0, first=30.0, fixed=0.5)
"""A marker for tests on a busy machine, which makes frames late; most tests are not about that."""
BLACK = 0


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    tmp_path.chmod(0o755)
    return Shelf(tmp_path)


def made(shelf: Shelf, name: str, *options: str, first: int, frames: int = 30, fps: str = "25", sound: str = "") -> str:
    """Make a film with these numbers. `sound` are options of a tone of the same length."""
    tone = ("-f", "lavfi", "-i", f"sine=frequency=440:duration={frames / float(fps):.3f}:sample_rate=44100") if sound else ()
    codecs = options or ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p")
    film(shelf.root / name, *codecs, *sound.split(), frames=frames, fps=fps, first=first, inputs=tone)
    return name


def ffmpeg(*arguments: str | Path) -> None:
    subprocess.run([tool("ffmpeg"), "-v", "error", *arguments], check=True)


def encode() -> int:
    """Return the process of the encode, among those of decoders."""
    (child,) = (pid for pid in children("ffmpeg") if b"libx264" in Path(f"/proc/{pid}/cmdline").read_bytes())
    return child


@asynccontextmanager
async def playing(
    client: GuardedClient,
    programme: PlayoutProgramme,
    *urls: str,
    session: int = 7,
    patience: PlayoutPatience = STEADY,
    size: Mapping[str, Any] = MappingProxyType({}),
) -> AsyncIterator[RunningFfmpeg]:
    encoder: FfmpegEncoder = replace(ffmpeg_encoder(client), playout_patience=patience)
    run = await encoder.start(
        ffmpeg_plan(*urls, **size), channel="news", session=session, may_send=lambda: True, programme=programme
    )
    try:
        yield run
    finally:
        await run.stop()
        assert children("ffmpeg") == []


def on_air(run: RunningFfmpeg) -> PlayoutStatistics:
    result = run.statistics().playout
    assert result is not None
    return result


def sent(receiver: Receiver, path: Path, *, track: str = "v0", session: int = 7) -> Path:
    taken = [entry for entry in receiver.media("one") if entry.session == session and entry.path.startswith(f"/one/{track}-")]
    path.write_bytes(receiver.file(f"/one/{track}-{session}.mp4") + b"".join(entry.body for entry in taken))
    return path


def jumps(path: Path, *, stream: str, step: float) -> list[float]:
    """Return the times, in seconds, between two packets that are not the duration of one."""
    shown = probed(path, "-select_streams", stream, "-show_entries", "packet=dts_time")["packets"]
    times = [float(entry["dts_time"]) for entry in shown]
    return [later - before for before, later in pairwise(times) if abs(later - before - step) > 0.001]


def played(shown: list[int]) -> list[int]:
    """Return the shown numbers without black."""
    return [number for number in shown if number != BLACK]


def counted(first: int, frames: int = 30) -> list[int]:
    return list(range(first, first + frames))


async def test_borders_between_sources_of_every_kind_are_neither_gap_nor_jump(
    client: GuardedClient, receiver: Receiver, shelf: Shelf, tmp_path: Path, thorough: bool
) -> None:
    """There are five borders; 101 with --thorough."""
    rounds = 17 if thorough else 1
    x264 = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p")
    items = (
        made(shelf, "a.mp4", first=1, sound="-c:a aac"),
        made(shelf, "b.mp4", *x264, "-s", "256x192", first=40, fps="50", frames=60),
        made(shelf, "c.mp4", "-c:v", "mpeg4", "-q:v", "3", first=101, frames=15, fps="12.5", sound="-c:a libmp3lame -ac 2"),
        made(shelf, "d.mp4", first=120, frames=3),
        made(shelf, "e.mkv", *x264, "-s", "320x240", first=130, sound="-c:a pcm_s16le -ar 8000"),
        item(made(shelf, "f.mp4", first=170, frames=60, sound="-c:a aac"), start=0.4, end=1.6),
    )
    shelf.put(*items * rounds)
    async with playing(client, shelf.programme(), receiver.point("one")) as run:
        await until(lambda: shelf.place.get("anchor", {}).get("over"), seconds=PATIENCE * rounds)
        assert (on_air(run).skipped, on_air(run).repeated) == (0, 0)
    shown = numbers(sent(receiver, tmp_path / "v.mp4"))
    expected = [counted(1), counted(40, 60)[::2], sorted(counted(101, 15) * 2), counted(120, 3), counted(130), counted(180)]
    assert played(shown) == list(chain(*expected)) * rounds
    assert shown[-1] == BLACK, "after the end it is black"
    assert jumps(tmp_path / "v.mp4", stream="v", step=1 / RATE) == []
    assert jumps(sent(receiver, tmp_path / "a.mp4", track="a0"), stream="a", step=1024 / 48_000) == []


async def test_items_that_are_hard_to_play(client: GuardedClient, receiver: Receiver, shelf: Shelf, tmp_path: Path) -> None:
    """The first item is long, and the others are prepared meanwhile: none is late because of the two before it that are skipped."""
    x264 = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p")
    whole = (shelf.root / made(shelf, "whole.mp4", *x264, "-movflags", "+faststart", "-g", "5", first=1, frames=180)).read_bytes()
    (shelf.root / "cut.mp4").write_bytes(whole[: len(whole) * 2 // 3])
    (shelf.root / "text.mp4").write_bytes(b"no film" * 1_000)
    (shelf.root / "list.mp4").write_text("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n")
    ffmpeg("-f", "lavfi", "-i", "sine=duration=0.8", shelf.root / "sound.m4a")
    made(shelf, "straight.mp4", first=101, frames=20)
    ffmpeg("-display_rotation", "90", "-i", shelf.root / "straight.mp4", "-c", "copy", shelf.root / "turned.mp4")
    variable = ("-vf", "select='not(eq(n,4)+eq(n,5)+eq(n,6))'", "-fps_mode", "passthrough")
    shelf.put(
        "cut.mp4",
        "missing.mp4",
        "sound.m4a",
        "text.mp4",
        "list.mp4",
        made(shelf, "variable.mp4", *x264, *variable, first=130, frames=20),
        "turned.mp4",
        made(shelf, "vanishes.mp4", first=201, frames=50, sound="-c:a aac"),
    )
    async with playing(client, shelf.programme(), receiver.point("one"), patience=replace(STEADY, fixed=PATIENCE)) as run:
        await until(lambda: on_air(run).item == 7, seconds=PATIENCE)
        (shelf.root / "vanishes.mp4").unlink()
        await until(lambda: shelf.place.get("anchor", {}).get("over"), seconds=PATIENCE)
        assert (on_air(run).skipped, on_air(run).repeated) == (3, 0)
    shown = numbers(sent(receiver, tmp_path / "v.mp4"))
    first = shown.index(BLACK)
    assert 60 <= first < 180
    assert shown[:first] == counted(1, first), "a film that is cut off is shown as far as it goes"
    assert shown[first : first + 20] == [BLACK] * 20, "a sound alone has a black picture"
    variable_shown = [*counted(130, 4), *[133] * 3, *counted(137, 13)]
    assert shown[first + 20 : first + 40] == variable_shown
    turned = numbers(tmp_path / "v.mp4", turned="crop=72:96,transpose=clock,")
    assert turned[first + 40 : first + 60] == counted(101, 20), "as it says it is to be turned, between black"
    assert shown[first + 60 : first + 110] == counted(201, 50), "what is on the air goes on without its name"
    assert jumps(tmp_path / "v.mp4", stream="v", step=1 / RATE) == []
    assert jumps(sent(receiver, tmp_path / "a.mp4", track="a0"), stream="a", step=1024 / 48_000) == []
    assert [note.split(",")[0] for note in shelf.notes] == [f"item {number} of the playlist" for number in (2, 4, 5)]
    assert not any(word in note for note in shelf.notes for word in ("passwd", str(shelf.root)))


async def test_a_playlist_that_is_replaced_all_the_time_disturbs_nothing(
    client: GuardedClient, receiver: Receiver, shelf: Shelf, tmp_path: Path, thorough: bool
) -> None:
    """The playlist is replaced every 100 ms for 5 seconds, or a minute with --thorough. Every other one has another film after the
    first: the picture is that of one of them, from its first to its last frame."""
    first_film, second_film, third_film = (made(shelf, f"{first}.mp4", first=first, frames=40) for first in (1, 51, 101))
    shelf.put(first_film, second_film, looped=True)
    async with playing(client, shelf.programme(), receiver.point("one")) as run:
        for turn in range(600 if thorough else 50):
            shelf.put(first_film, (second_film, third_film)[turn % 2], looped=True)
            await asyncio.sleep(0.1)
        shelf.put(second_film)
        await until(lambda: shelf.place.get("anchor", {}).get("over"), seconds=PATIENCE)
        assert on_air(run).skipped == 0
    shown = played(numbers(sent(receiver, tmp_path / "v.mp4")))
    assert len(shown) >= 3 * 40
    items = [shown[at : at + 40] for at in range(0, len(shown), 40)]
    assert all(each == counted(each[0], 40) for each in items)
    firsts = [each[0] for each in items]
    assert firsts[0] == 1
    assert all({before, after} & {1} for before, after in pairwise(firsts[:-1])), "every other one is the first film"
    assert firsts[-1] == 51
    assert jumps(tmp_path / "v.mp4", stream="v", step=1 / RATE) == []


def decoder(run: RunningFfmpeg) -> int:
    """Return the process of the item on the air."""
    assert run._playout is not None
    assert run._playout.on_air is not None
    return run._playout.on_air.decoder.pid


async def test_a_decoder_that_hangs_or_dies_on_the_air(
    client: GuardedClient, receiver: Receiver, shelf: Shelf, tmp_path: Path
) -> None:
    """The last picture stays. A decoder that continues shows what is due by then; one that does not is replaced by the next
    item."""
    firsts, frames = (1, 61, 121, 181), 60
    shelf.put(*(made(shelf, f"{first}.mp4", first=first, frames=frames) for first in firsts))
    patience = PlayoutPatience(late=1.0, gone=3.0, fixed=0.5)
    large = {"renditions": [{"height": 384, "width": 512, "bitrate": 400_000, "fps": RATE}]}  # few of its pictures are in a pipe
    async with playing(client, shelf.programme(), receiver.point("one"), patience=patience, size=large) as run:

        async def in_the_middle_of(place: int) -> int:
            await until(lambda: on_air(run).item == place and on_air(run).position > 0.3, seconds=PATIENCE)
            return decoder(run)

        slow = await in_the_middle_of(0)
        os.kill(slow, signal.SIGSTOP)
        await until(lambda: on_air(run).repeated >= 5, seconds=PATIENCE)
        os.kill(slow, signal.SIGCONT)
        os.kill(await in_the_middle_of(1), signal.SIGSTOP)
        os.kill(await in_the_middle_of(2), signal.SIGKILL)
        await until(lambda: shelf.place.get("anchor", {}).get("over"), seconds=PATIENCE)
        assert on_air(run).skipped == 1
    shown = played(numbers(sent(receiver, tmp_path / "v.mp4")))
    items = [[number for number in shown if first <= number < first + frames] for first in firsts]
    assert shown == list(chain(*items)), "one after the other"
    assert all(each == sorted(each) for each in items)
    assert abs(len(items[0]) - frames) <= 1, "it ends when it would have ended"
    assert items[0][-1] == frames
    assert len(set(items[0])) < frames
    assert len(set(items[1])) < frames
    assert len(set(items[2])) < frames
    assert items[3] == counted(181, frames)
    assert jumps(tmp_path / "v.mp4", stream="v", step=1 / RATE) == []
    assert [note.partition(":")[2] for note in shelf.notes] == [" its decoder gave no more pictures while it was on the air"]


async def test_who_goes_on_later_shows_what_is_due_by_then(
    client: GuardedClient, receiver: Receiver, shelf: Shelf, tmp_path: Path
) -> None:
    """The encode is killed in the middle of an item, and continues elsewhere in the middle of the next."""

    def behind(run: RunningFfmpeg) -> float:
        """Return the difference from what is due, in seconds."""
        shows = on_air(run).position + (60 / RATE if on_air(run).item == 1 else 0.0)
        return abs((time.time() - begun) % (250 / RATE) - shows)

    shelf.put(made(shelf, "1.mp4", first=1, frames=60), made(shelf, "61.mp4", first=61, frames=190), looped=True)
    async with playing(client, shelf.programme(), receiver.point("one")) as run:
        await until(lambda: on_air(run).position > 1.0, seconds=PATIENCE)
        begun = float(shelf.place["anchor"]["at"])
        await until(lambda: len(receiver.media("one")) > 3, seconds=PATIENCE)
        os.kill(encode(), signal.SIGKILL)
        assert await run.ended() == "ffmpeg was ended by signal 9."
        assert not run.over
    await until(lambda: time.time() > begun + 3.2, seconds=PATIENCE)
    async with playing(client, shelf.programme(last_place=shelf.place), receiver.point("one"), session=8) as run:
        await until(lambda: on_air(run).item == 1, seconds=PATIENCE)
        await until(lambda: [entry for entry in receiver.media("one") if entry.session == 8], seconds=PATIENCE)
        assert abs(float(shelf.place["anchor"]["at"]) - begun - 60 / RATE) < 0.05, "the anchor stays where it was"
        await until(lambda: behind(run) < 0.5, seconds=PATIENCE)
    first, number = (numbers(sent(receiver, tmp_path / f"{session}.mp4", session=session))[0] for session in (7, 8))
    assert first == 1
    assert number > 61 + 0.8 * RATE


async def test_what_follows_an_item_that_was_over_before_it_was_ready_is_on_time(
    client: GuardedClient, receiver: Receiver, shelf: Shelf, tmp_path: Path
) -> None:
    """A decoder on a busy machine needs longer to start than the rest of the item lasts."""
    shelf.put(made(shelf, "1.mp4", first=1, frames=30), made(shelf, "101.mp4", first=101, frames=400))
    slow = Slow(shelf.root, playlist=shelf.playlist)
    programme = slow.programme(clock=slow.clock)
    place = programme.successor(None)
    assert place is not None
    begun = programme.now() - 0.6
    programme.measured(place.mark, 30 / RATE)
    programme.began(place, at=begun)
    async with playing(client, slow.programme(last_place=programme.place(), clock=slow.clock), receiver.point("one")) as run:
        await until(lambda: on_air(run).position > 3.0, seconds=PATIENCE)
        assert on_air(run).item == 1
        assert slow.place["anchor"]["at"] == pytest.approx(begun + 30 / RATE, abs=0.05)
    shown = numbers(sent(receiver, tmp_path / "v.mp4"))
    assert shown[0] >= 101 + (0.6 + slow.seconds - 30 / RATE) * RATE - 1
    assert shown == list(range(shown[0], shown[0] + len(shown)))


async def test_an_item_that_is_never_ready_before_it_is_over_is_played_late(
    client: GuardedClient, receiver: Receiver, shelf: Shelf, tmp_path: Path
) -> None:
    shelf.put(made(shelf, "1.mp4", first=1, frames=500), looped=True)
    slow = Slow(shelf.root, playlist=shelf.playlist, seconds=20.0, times=10**6)
    programme = slow.programme(clock=slow.clock)
    place = programme.successor(None)
    assert place is not None
    programme.measured(place.mark, 500 / RATE)
    programme.began(place, at=programme.now())
    patience = replace(STEADY, first=1.0)
    programme = slow.programme(last_place=programme.place(), clock=slow.clock)
    async with playing(client, programme, receiver.point("one"), patience=patience) as run:
        await until(lambda: on_air(run).item is not None, seconds=PATIENCE)
        await until(lambda: receiver.media("one"), seconds=PATIENCE)
    assert 1 < 10**6 - slow.times < 40, "it was waited for a second, not until its end"


@dataclass
class Slow(Shelf):
    """Files of items that take so many seconds, by the clock of the day, to open."""

    seconds: float = 2.0
    times: int = 1
    passed: float = 0.0

    def clock(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.passed)

    async def open(self, item: Item, *, within: float) -> OpenedItem:
        if self.times:
            self.times -= 1
            self.passed += self.seconds
        return await super().open(item, within=within)


async def test_what_can_be_played_by_nobody_is_tried_again(
    client: GuardedClient, receiver: Receiver, shelf: Shelf, tmp_path: Path
) -> None:
    """The picture is black until one of the items is available, and black again at the end, until one is added."""
    patience = replace(STEADY, again=0.1)
    made(shelf, "soon.mp4", first=1)
    (shelf.root / "soon.mp4").rename(shelf.root / "kept.mp4")
    shelf.put("never.mp4", "soon.mp4")
    async with playing(client, shelf.programme(), receiver.point("one"), patience=patience) as run:
        await until(lambda: on_air(run).skipped >= 4, seconds=PATIENCE)
        assert len(shelf.notes) == 2, "each once"
        (shelf.root / "kept.mp4").rename(shelf.root / "soon.mp4")
        await until(lambda: shelf.place.get("anchor", {}).get("over"), seconds=PATIENCE)
        shelf.put("never.mp4", "soon.mp4", made(shelf, "more.mp4", first=101))
        await until(lambda: on_air(run).item == 2, seconds=PATIENCE)
        await until(lambda: on_air(run).item is None, seconds=PATIENCE)
    shown = numbers(sent(receiver, tmp_path / "v.mp4"))
    assert played(shown) == [*counted(1), *counted(101)]
    assert shown[0] == BLACK
    assert shown[shown.index(30) + 1] == BLACK
    assert jumps(tmp_path / "v.mp4", stream="v", step=1 / RATE) == []
