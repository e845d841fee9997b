"""A playlist on the air whose workers are killed, frozen and stopped, and whose encodes die. Each frame that arrived is compared
with the frame that was due by the clock."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from faults.findings import markdown
from faults.on_air_stage import AirStage
from faults.patience import waited
from faults.processes import Supervised
from faults.stage import EACH
from tests.support.receiver import Receiver, receiving
from tests.support.sources.numbered_frames import film, numbers, probed

NAME: Final = "playout"
MEANING: Final = "a playlist on the air whose workers and encodes fail: each frame that arrived, compared with the clock"
OFF: Final = 2.0
"""The seconds by which a frame may differ from the one that is due by the clock, in addition to the time that an encode takes to
its first frame."""
SILENT: Final = 25.0
"""The seconds without media after which a fault counts as not recovered."""
_RATE: Final = 25
_FRAMES: Final = 240
_ROUND: Final = _FRAMES / _RATE
_PATIENCE: Final = 120.0
_FROZEN: Final = 9.0
_COLUMNS: Final = (
    *("scenario", "faults", "sessions", "frames", "s off the clock, at most", "s silent, at most", "black", "wrong", "holds"),
)


class PlayoutStage(AirStage):
    WORKERS: ClassVar[Mapping[str, int]] = {"sessions": EACH}

    def __init__(self, folder: Path, *, dice: random.Random) -> None:
        super().__init__(folder, kafka=False, dice=dice)

    @property
    def media(self) -> Path:
        return self._home / "media"

    def encodes(self) -> Mapping[int, int]:
        """Return the processes of encoders without decoders. This blocks."""
        return {child: parent for child, parent in self.children().items() if _is_encode(child)}


@dataclass(slots=True)
class Result:
    name: str
    happened: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    frames: int = 0
    off: float = 0.0
    silent: float = 0.0
    black: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.wrong and self.frames > 0


async def run_scenarios(folder: Path, *, quick: bool, seed: int, tell: Callable[[str], None]) -> list[Result]:
    dice = random.Random(seed)
    kinds = ["kill", "freeze", "end", "encode"] * (1 if quick else 4)
    dice.shuffle(kinds)
    result = Result(NAME)
    async with receiving() as receiver, PlayoutStage(folder / NAME, dice=dice) as stage:
        await asyncio.to_thread(_films, stage.media)
        event = await _on_air(stage, receiver)
        await _arrived(receiver, more=6, result=result)
        for kind in kinds:
            await asyncio.sleep(dice.uniform(3, 8))
            await _happen(kind, stage)
            result.happened[kind] += 1
            await _arrived(receiver, more=6, result=result)
        await stage.request("PUT", f"/api/event/state/{event}", {"state": 4})
        await _ended(stage, result)
        await asyncio.to_thread(_judge, receiver, stage.media, result)
    tell("\n".join((f"\n{NAME}: {dict(result.happened)}", *(f"  {sentence}" for sentence in result.wrong))))
    return [result]


def table(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table, for docs/reference/guarantees.md."""
    return markdown(_COLUMNS, map(_line, results))


def _line(result: Result) -> tuple[str, ...]:
    figures = (
        result.happened.total(),
        result.sessions,
        result.frames,
        f"{result.off:.2f}",
        f"{result.silent:.1f}",
        result.black,
        len(result.wrong),
    )
    return (result.name, *map(str, figures), "yes" if result.holds else "no")


# --- what happens


def _films(folder: Path) -> None:
    """Make two films of different codec, size and rate, whose frames have the numbers of their places in the round."""
    folder.mkdir(parents=True, exist_ok=True)
    film(folder / "one.mp4", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-s", "256x192", frames=_FRAMES // 2, first=1)
    film(folder / "two.mp4", "-c:v", "mpeg4", "-q:v", "3", frames=_FRAMES // 2, first=_FRAMES // 2 + 1)


async def _on_air(stage: PlayoutStage, receiver: Receiver) -> str:
    specific = {"renditions": [{"width": 128, "height": 96, "bitrate": 100_000, "fps": _RATE}], "keyFrameInterval": 0.5}
    server = {"streamingServerSpecific": {"primaryPublishingPoint": {"publishingPointUrl": receiver.point("a")}}}
    encoder = {"name": "e", "type": "ffmpeg", "supportsComposition": True, "encoderSpecific": specific, "streamingServer": server}
    configuration = json.dumps({"encoders": [encoder]})
    channel = (await stage.request("POST", "/api/channel/", {"name": "linear", "configurationJson": configuration}))["id"]
    items: list[Any] = [{"type": 1, "value": name} for name in ("one.mp4", "missing.mp4", "two.mp4")]
    composed = {"event": {"title": "linear", "channelId": channel}, "playlist": {"name": "l", "looped": True, "items": items}}
    event = str(await stage.request("POST", "/api/compose/encoder/", composed))
    await stage.request("PUT", f"/api/event/state/{event}", {"state": 1})
    return event


async def _happen(kind: str, stage: PlayoutStage) -> None:
    encodes = await asyncio.to_thread(stage.encodes)
    worker = _of(stage, set(encodes.values()))
    match kind:
        case "encode":
            for child in encodes:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
        case "kill":
            worker.kill()
        case "end":
            worker.terminate()
        case "freeze":
            worker.freeze()
            await asyncio.sleep(_FROZEN)
            worker.thaw()


def _of(stage: PlayoutStage, parents: set[int]) -> Supervised:
    return next((process for process in stage.processes["sessions"] if process.pid in parents), stage.processes["sessions"][0])


async def _arrived(receiver: Receiver, *, more: int, result: Result) -> None:
    """Wait until this number of further segments has arrived."""
    before = len(receiver.media("a"))
    silent = await waited(lambda: len(receiver.media("a")) > before, seconds=_PATIENCE)
    if result.happened:
        result.silent = max(result.silent, silent)
        if silent > SILENT:
            result.wrong.append(f"{silent:.0f} s without media")
    await waited(lambda: len(receiver.media("a")) >= before + more, seconds=_PATIENCE)


async def _ended(stage: PlayoutStage, result: Result) -> None:
    await waited(lambda: not stage.children(), seconds=_PATIENCE)
    result.wrong += [f"process {child} after the stop" for child in stage.children()]


# --- what is found


def _judge(receiver: Receiver, folder: Path, result: Result) -> None:
    """Compare what every frame shows with the frame that was due at its time, counted from the first frame."""
    taken = [piece for piece in receiver.media("a") if piece.path.startswith("/a/v0-")]
    order = [piece.session for piece in taken]
    if order != sorted(order):
        result.wrong.append("a session sent after a later one")
    sessions = list(dict.fromkeys(order))
    result.sessions = len(sessions)
    begun: float | None = None
    for session in sessions:
        path = folder / f"{session}.received.mp4"
        media = b"".join(piece.body for piece in taken if piece.session == session)
        path.write_bytes(receiver.file(f"/a/v0-{session}.mp4") + media)
        shown = numbers(path)
        packets = probed(path, "-select_streams", "v", "-show_entries", "packet=pts_time")["packets"]
        times = [float(piece["pts_time"]) for piece in packets]
        for number, at in zip(shown, times, strict=True):
            begun = at if begun is None else begun
            _frame(number, at - begun, session=session, result=result)


def _frame(number: int, at: float, *, session: int, result: Result) -> None:
    result.frames += 1
    if not 1 <= number <= _FRAMES:
        result.black += 1
        return
    off = (at - (number - 1) / _RATE + _ROUND / 2) % _ROUND - _ROUND / 2
    if abs(off) > OFF and not any(str(session) in sentence for sentence in result.wrong):
        result.wrong.append(f"session {session} shows the frame {number} {off:+.2f} s off the clock, {at:.2f} s after the first")
    result.off = max(result.off, abs(off))


def _is_encode(process: int) -> bool:
    with suppress(OSError):
        return b"libx264" in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    return False
