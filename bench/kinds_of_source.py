"""`python -m bench.kinds_of_source FOLDER`: kinds of source, each through ingest, capture, compose, clips and stills.

Flashes and beeps are measured on the decoded frames and samples of everything that is made, in processes of steps, without a
database. FOLDER holds one JSON file for each kind. A kind that has a file is not measured again: a run may be stopped and
continued, and several runs may share the work with `--every`. `--markdown` prints the table of docs/measurements/sources.md from
these files.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final

import uvloop

from bench.report import middle
from bench.source_kinds import BY_NAME, KINDS, Kind, even
from tests.support.origin import Origin
from tests.support.packages import Results, run
from tests.support.sources import films
from tests.support.sources.films import Form
from tests.support.sources.measure import picture, sound
from tests.support.sources.playlists import event, item, playlist
from tests.support.step_hosts import Listener
from workers.adapters.ffmpeg import find
from workers.job.protocol import StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.job.step_processes import step_fork_server
from workers.kernel.confinement import NICE

_FILM, _OTHER, _COMPOSED, _CAPTURED = (event(number) for number in (1, 2, 3, 4))
_OTHER_SECONDS: Final = 4.0
_EACH_ITS_OWN: Final = "bandpass=f=1000:width_type=h:w=400,bandpass=f=1000:width_type=h:w=400,volume=16"
"""Audio filters: every item of a composed film has a loudness of its own, and a hum alone is as loud as beeps."""
_AT_ONCE: Final = 0.1
"""Sound in the first seconds, up to this one, is not checked for sync: an audio decoder begins with silence."""
_SOUND: Final = 0.08
"""The seconds of sound that may be missing: audio encoders work in packets, of which the first and the last may be cut off."""
_SEGMENT: Final = 2.0
_LAST_FRAME: Final = 0.1
"""The assumed duration of the last frame in seconds. It may be too long: a segment that is listed as longer than it is loses
nothing."""
_PACKET: Final = 188
_CLOCK: Final = 2**33 / 90_000
_JUMP: Final = 10.0
_COLUMNS: Final[Mapping[str, str]] = {
    "film": "film",
    "package": "package",
    "capture": "capture",
    "compose": "compose",
    "clip": "clip",
    "source clip": "clip of the source",
    "copied": "copied clip",
    "still": "still",
    "source still": "still of the source",
}
_Cell = dict[str, Any]


@dataclass(frozen=True)
class _Wanted:
    """The expected picture and sound. Times count from the first picture; `frame` is the duration of a frame. All are in
    seconds."""

    flashes: Sequence[float]
    beeps: Sequence[float]
    seconds: float
    frame: float
    frames: int = 0
    sound: float = 0.0
    filters: str = ""
    """ffmpeg filters for the sound."""
    slack: float = 0.0
    """The seconds by which flashes and beeps may be moved together: composed films have their own grid of frames."""

    still: bool = False
    """True if the picture is a still: the beginning of a copied clip cannot be seen."""
    white: float = 0.0
    """The end of the first flash if the picture is a still."""

    def cut(self, begin: float, end: float, **more: Any) -> _Wanted:
        times = [[time - begin for time in marks if begin - 0.001 <= time < end - 0.001] for marks in (self.flashes, self.beeps)]
        if 0 < begin < self.white:
            times[0].insert(0, 0.0)
        return _Wanted(times[0], times[1], end - begin, self.frame, **more)


def _measured(shown: Path, heard: Path, wanted: _Wanted, *, track: str = "v:0", from_key: bool = False) -> _Cell:
    """Compare a file with what is expected. With `from_key` it may begin earlier, with a key frame."""
    seen, listened = picture(shown, track=track), sound(_filtered(heard, wanted.filters)) if wanted.beeps or wanted.sound else None
    wrong: list[str] = []
    flashes = [flash - seen.times[0] for flash in seen.flashes]
    beeps = [beep - seen.times[0] for beep in listened.beeps] if listened is not None else []
    if from_key and flashes and wanted.flashes:
        earlier = flashes[-1] - wanted.flashes[-1]
        flashes, beeps = ([time - earlier for time in marks if time - earlier > -0.02] for marks in (flashes, beeps))
    if from_key and wanted.still:
        flashes, beeps = list(wanted.flashes), list(wanted.beeps)
    pairs, sounds = _paired(wanted.flashes, flashes), _paired(wanted.beeps, beeps)
    if len(flashes) != len(wanted.flashes):
        wrong.append(f"{len(flashes)} of {len(wanted.flashes)} flashes")
    if len(beeps) != len(wanted.beeps):
        wrong.append(f"{len(beeps)} of {len(wanted.beeps)} beeps")
    moved = max((abs(measured - right) for right, measured in pairs.items()), default=0.0)
    if moved > wanted.frame * 1.05 + wanted.slack + 0.002:
        wrong.append(f"flashes are {moved:.2f} s off")
    later = [(right, beep) for right, beep in sounds.items() if right > _AT_ONCE]
    shift = max((abs((beep - right) - _near(pairs, right)) for right, beep in later), default=0.0)
    if shift > wanted.frame * 1.05:
        wrong.append(f"beeps are {shift:.3f} s off")
    lost = max(wanted.frames - len(seen.times), 0)
    if lost:
        wrong.append(f"{lost} of {wanted.frames} frames are missing")
    silent = max(wanted.sound - listened.lasts, 0.0) if listened is not None else 0.0
    if silent > _SOUND:
        wrong.append(f"{silent:.2f} s of sound are missing")
    last = seen.times[-1] - seen.times[0]
    if not from_key and last > wanted.seconds + wanted.slack + wanted.frame:
        wrong.append(f"the picture lasts {last - wanted.seconds:.2f} s longer")
    return {"sync": round(shift / wanted.frame, 2), "frames": lost, "sound": round(silent, 3), "wrong": wrong}


def _filtered(heard: Path, filters: str) -> Path:
    if not filters:
        return heard
    made = heard.with_suffix(".heard.mkv")
    films.ffmpeg("-copyts", "-i", str(heard), "-map", "0:a:0", "-af", filters, "-c:a", "pcm_s16le", str(made))
    return made


def _without_jumps(times: Sequence[float], frame: float) -> list[float]:
    """Return the times of frames, counted from the first, as if their clock had not jumped."""
    steps = [after - before for before, after in pairwise(times)]
    return list(accumulate((step if 0 < step < _JUMP + 5 else frame for step in steps), initial=0.0))


def _refused(made: StepFailure, rightly: str) -> _Cell:
    return {"refused": made.reason, "wrong": []} if rightly and rightly in made.reason else {"wrong": [made.reason]}


def _paired(wanted: Sequence[float], measured: Sequence[float]) -> dict[float, float]:
    """Return each expected time with the nearest measured one."""
    return {time: min(measured, key=lambda other: abs(other - time)) for time in wanted if measured}


def _near(pairs: Mapping[float, float], at: float) -> float:
    """Return by how much the flash nearest to a time is moved."""
    nearest = min(pairs, key=lambda flash: abs(flash - at), default=None)
    return 0.0 if nearest is None else pairs[nearest] - nearest


@dataclass
class _Studio:
    hosts: StepProcessPool
    root: Path
    rounds: bool
    messages: list[str] = field(default_factory=list)

    async def step(self, workflow: str, content: str, **parameters: Any) -> Results | StepFailure:
        listener = Listener()
        made = await run(self.hosts, self.root, workflow, content_id=content, listener=listener, **parameters)
        self.messages += [f"{workflow}: {message}" for _, message in listener.lines]
        return made

    def file(self, content: str, name: str = "") -> Path:
        return self.root / content / (name or f"{content}.mp4")

    async def measured(self, kind: Kind) -> dict[str, Any]:
        self.messages = []
        for old in self.root.iterdir():
            if not old.name.startswith("."):
                shutil.rmtree(old)
        source = self.root / "in" / kind.file
        source.parent.mkdir()
        kind.make(source)
        cells: dict[str, _Cell] = {}
        result: dict[str, Any] = {"kind": kind.name, "cells": cells, "ratio": None, "told": self.messages}
        begun = time.perf_counter()
        made = await self.step("vod_ingest", _FILM, file=f"in/{kind.file}")
        took = time.perf_counter() - begun
        if isinstance(made, StepFailure):
            cells["film"] = _refused(made, kind.refused)
            return result
        if kind.refused:
            cells["film"] = {"wrong": ["not refused"]}
            return result
        decoded = picture(source, track=kind.picture)
        source_wanted = _Wanted(
            kind.shown_flashes,
            kind.heard_beeps,
            kind.seconds,
            kind.frame,
            frames=len(decoded.times),
            sound=kind.sound_lasts,
            white=kind.white,
        )
        film = _of_film(kind, source_wanted)
        cells["film"] = self._tried(lambda: _measured(self.file(_FILM), self.file(_FILM), film))
        cells["package"] = self._tried(lambda: self._package(kind, made, film))
        result["ratio"] = await self._ratio(kind, source, made, took)
        if kind.streamed:
            cells["capture"] = await self._capture(kind, source, source_wanted)
        cells["compose"] = await self._compose(kind, film)
        shutil.copyfile(source, self.file(_FILM, f"source{source.suffix}"))
        for name, file, wanted in (("", f"{_FILM}.mp4", film), ("source ", f"source{source.suffix}", source_wanted)):
            cells[f"{name}clip"] = await self._clip(kind, file, wanted)
            cells[f"{name}still"] = await self._still(kind, file)
        cells["copied"] = await self._clip(kind, f"{_FILM}.mp4", film, copied=True)
        return result

    def _tried(self, look: Callable[[], _Cell]) -> _Cell:
        try:
            return look()
        except (AssertionError, IndexError) as fault:
            return {"wrong": [f"cannot be measured: {str(fault)[:200]}"]}

    def _package(self, kind: Kind, made: Results, wanted: _Wanted) -> _Cell:
        folder, videos = self.root / _FILM / "clear", made["renditions"]["videos"]
        heard = folder / made["renditions"]["audios"][0]["file"]
        cell = _measured(folder / videos[0]["file"], heard, wanted)
        shape = videos[0]["width"] / videos[0]["height"]
        if abs(shape / kind.shape - 1) > 0.03:
            cell["wrong"].append(f"its shape is {shape:.2f}, not {kind.shape:.2f}")
        return cell

    async def _capture(self, kind: Kind, source: Path, wanted: _Wanted) -> _Cell:
        files = _streamed(kind, source)
        async with Origin(dict(files)) as origin:
            given = {"sources": [f"{origin.url}/i.m3u8"], "start": "00:00:00", "end": "00:01:00"}
            made = await self.step("vod_capture", _CAPTURED, **given, renditions=[90])
        if isinstance(made, StepFailure):
            return {"wrong": [made.reason]}
        return self._tried(lambda: _measured(self.file(_CAPTURED), self.file(_CAPTURED), wanted))

    async def _compose(self, kind: Kind, wanted: _Wanted) -> _Cell:
        """Compose two parts of the film, with another film between them."""
        films.film(self.file(_OTHER).parent.parent / "other.mp4", Form(seconds=_OTHER_SECONDS))
        self.file(_OTHER).parent.mkdir(exist_ok=True)
        (self.root / "other.mp4").rename(self.file(_OTHER))
        length = wanted.seconds
        spans = [(0.0, length)] if length < 1 else [(0.06 * length, 0.44 * length), (0.56 * length, 0.94 * length)]
        items, flashes, beeps, begin = [], list[float](), list[float](), 0.0
        for number, span in enumerate(spans):
            times = {"start": _clock(span[0]), "end": _clock(span[1]), "frameAccurate": True} if length >= 1 else {}
            items.append(item(1, **times))
            part = wanted.cut(*span)
            flashes += [begin + flash for flash in part.flashes]
            beeps += [begin + beep for beep in part.beeps]
            begin += part.seconds
            if number == 0:
                items.append(item(2))
                flashes += [begin + time for time in even(_OTHER_SECONDS)]
                beeps += [begin + time for time in even(_OTHER_SECONDS)]
                begin += _OTHER_SECONDS
        made = await self.step("compose", _COMPOSED, generation=1, playlist=playlist(*items), renditions=[90])
        if isinstance(made, StepFailure):
            return {"wrong": [made.reason]}
        frame = max(kind.frame, 1 / 25)
        flashes = [time for before, time in zip([-1.0, *flashes], flashes, strict=False) if time - before > films.LASTS]
        beeps = [time for before, time in zip([-1.0, *beeps], beeps, strict=False) if time - before > films.LASTS]
        whole = _Wanted(flashes, beeps, begin, frame, sound=begin, filters=_EACH_ITS_OWN, slack=4 * frame)
        return self._tried(lambda: _measured(self.file(_COMPOSED), self.file(_COMPOSED), whole))

    async def _clip(self, kind: Kind, file: str, wanted: _Wanted, *, copied: bool = False) -> _Cell:
        begin, end = (round(share * wanted.seconds, 3) for share in ((0.0, 1.0) if wanted.seconds < 1 else (0.19, 0.81)))
        given = {"start": _clock(begin), "end": _clock(end), "frame_accurate": not copied}
        made = await self.step("asset_video", _FILM, source=file, name="assets/clip.mp4", **given)
        if isinstance(made, StepFailure):
            return _refused(made, kind.direct if file.startswith("source") else "")
        part = wanted.cut(begin, end, still=kind.repeated)
        if not kind.repeated and not kind.damaged:
            part = wanted.cut(begin, end, frames=int(wanted.frames * (end - begin) / wanted.seconds), sound=_heard(kind, part))
        clip = self.file(_FILM, "assets/clip.mp4")
        return self._tried(lambda: _measured(clip, clip, part, from_key=copied))

    async def _still(self, kind: Kind, file: str) -> _Cell:
        """Check that the first frame of a flash is white and the frame before it is black. Their times are those that a player
        shows."""
        seen = picture(self.file(_FILM, file), track=kind.picture if file.startswith("source") else "v:0")
        flash = seen.flashes[len(seen.flashes) // 2]
        at = min(range(len(seen.times)), key=lambda place: abs(seen.times[place] - flash))
        times = _without_jumps(seen.times, kind.frame)
        wrong = []
        for place, white in ((at, True), (at - 1, False)):
            if place < 0:
                continue
            time = (times[place] + (times[place + 1] if place + 1 < len(times) else times[place] + kind.frame)) / 2
            made = await self.step("asset_image", _FILM, source=file, name="assets/still.jpg", time=_clock(time))
            if isinstance(made, StepFailure):
                return _refused(made, kind.direct if file.startswith("source") else "")
            if bool(picture(self.file(_FILM, "assets/still.jpg")).flashes) is not white:
                wrong.append(f"another frame at {time:.3f} s")
        return {"wrong": wrong}

    async def _ratio(self, kind: Kind, source: Path, made: Results, took: float) -> float | None:
        """Return the time of the ingest divided by the time of the same work by hand: the median of several rounds, in turns."""
        ratios: list[float] = []
        for number in range(kind.rounds if self.rounds else 0):
            if number:
                begun = time.perf_counter()
                await self.step("vod_ingest", _FILM, file=f"in/{source.name}")
                took = time.perf_counter() - begun
            by_hand = _by_hand(source, self.root / "hand", made, kind)
            if by_hand is None:
                return None
            ratios.append(took / by_hand)
        return round(middle(ratios), 2) if ratios else None


def _of_film(kind: Kind, wanted: _Wanted) -> _Wanted:
    """Return what is expected of the film made of a source, with the black that it may begin with."""
    moved = [flash + kind.added for flash in wanted.flashes]
    beeps = sorted({*even(kind.added), *(beep + kind.added for beep in wanted.beeps)}) if kind.added else wanted.beeps
    return _Wanted(
        moved,
        beeps,
        wanted.seconds + kind.added,
        wanted.frame,
        frames=wanted.frames,
        sound=wanted.sound + kind.added,
        white=wanted.white,
    )


def _heard(kind: Kind, part: _Wanted) -> float:
    """Return the seconds of sound that a clip must have. A clip is silent where its source is."""
    return part.seconds if kind.heard is None else 0.0


def _clock(seconds: float) -> str:
    return f"00:00:{seconds:06.3f}"


def _streamed(kind: Kind, source: Path) -> Mapping[str, bytes]:
    """Return the files of an HLS stream of the source, by name."""
    if kind.streamed == "ts":
        return _cut(source)
    folder = source.parent / "hls"
    folder.mkdir()
    made = ("-c", "copy", "-f", "hls", "-hls_time", str(_SEGMENT), "-hls_list_size", "0", "-hls_playlist_type", "vod")
    fragments = kind.streamed == "fmp4"
    segment_type = ("-hls_segment_type", "fmp4", "-strict", "-2") if fragments else ()
    names = ("-hls_segment_filename", "s%d.m4s" if fragments else "s%d.ts")
    films.ffmpeg("-i", str(source), *made, *segment_type, *names, "i.m3u8", folder=folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _cut(source: Path) -> Mapping[str, bytes]:
    """Return the files of an HLS stream: a transport stream, unchanged, cut before the key frames of its picture."""
    data = source.read_bytes()
    packets = [data[at : at + _PACKET] for at in range(0, len(data), _PACKET)]
    tables: dict[int, bytes] = {}
    segments: list[list[bytes]] = [[]]
    stamps: list[float] = []
    latest = 0.0
    for packet in packets:
        pid = films.pid(packet)
        if pid in films.TABLES:
            tables[pid] = packet
        stamp = films.stamp(packet)
        latest = latest if stamp is None else max(latest, stamp) if not stamps or abs(latest - stamp) < _JUMP else stamp
        if stamp is not None and (not stamps or (packet[3] & 0x20 and packet[5] & 0x40)):
            if stamps:
                segments.append([tables[table] for table in films.TABLES if table in tables])
            stamps.append(stamp)
        segments[-1].append(packet)
    lines = ["#EXTM3U", f"#EXT-X-TARGETDURATION:{round(_SEGMENT)}"]
    for number, stamp in enumerate(stamps):
        if number and _JUMP < abs(stamp - stamps[number - 1]) < _CLOCK - _JUMP:
            lines.append("#EXT-X-DISCONTINUITY")
        lasts = (stamps[number + 1] - stamp) % _CLOCK if number + 1 < len(stamps) else (latest - stamp) % _CLOCK + _LAST_FRAME
        lines.append(f"#EXTINF:{lasts if lasts < _JUMP else _SEGMENT:.3f},\ns{number}.ts")
    listed = "\n".join([*lines, "#EXT-X-ENDLIST"]).encode()
    return {"i.m3u8": listed} | {f"s{number}.ts": b"".join(segment) for number, segment in enumerate(segments)}


def _by_hand(source: Path, folder: Path, made: Results, kind: Kind) -> float | None:
    """Run one ffmpeg that makes the MP4 file and the same renditions, and one packager, with the priority of steps. Return the
    seconds; None if a program fails."""
    folder.mkdir(exist_ok=True)
    again = ("-c:v", "libx264", "-preset", "fast", "-pix_fmt", "yuv420p")
    aac = ("-c:a", "aac", "-b:a", "160k")
    coding = ("-c", "copy") if made["convert"]["copied"] else (*again, "-crf", "17", *aac)
    outputs = ["-map", f"0:{kind.picture}", "-map", "0:a:0", *coding, "-movflags", "+faststart", "film.mp4"]
    tracks = []
    for number, video in enumerate(made["renditions"]["videos"]):
        limits = ("-crf", "21", "-maxrate", str(video["bitRate"]), "-bufsize", str(2 * video["bitRate"]))
        sized = f"scale={video['width']}:{video['height']},setsar=1"
        keys = ("-force_key_frames", "expr:gte(t,n_forced*2)")
        outputs += ["-map", f"0:{kind.picture}", "-vf", sized, *again, *limits, *keys, f"video-{number}.mp4"]
        tracks.append(f"in=video-{number}.mp4,stream=video,output=v{number}.mp4,playlist_name=v{number}.m3u8")
    for number, _ in enumerate(made["renditions"]["audios"]):
        outputs += ["-map", f"0:a:{number}", *aac, f"audio-{number}.mp4"]
        tracks.append(
            f"in=audio-{number}.mp4,stream=audio,output=a{number}.mp4,playlist_name=a{number}.m3u8,hls_group_id=audio,hls_name=a{number}"
        )
    manifests = (
        "--hls_master_playlist_output",
        "master.m3u8",
        "--mpd_output",
        "manifest.mpd",
        "--segment_duration",
        "4",
        "--quiet",
    )
    nice = [str(shutil.which("nice")), "-n", str(NICE)]
    begun = time.perf_counter()
    for command in (
        [str(find("ffmpeg")), "-v", "error", "-y", "-i", str(source), *outputs],
        [str(find("packager")), *tracks, *manifests, "--quiet"],
    ):
        ended = subprocess.run([*nice, *command], cwd=folder, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        if ended.returncode != 0:
            return None
    return time.perf_counter() - begun


async def _all(kinds: Sequence[Kind], folder: Path, *, rounds: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="medialedger-bench-", ignore_cleanup_errors=True) as place:
        root = Path(place) / "media"
        root.mkdir()
        async with step_fork_server() as server:
            hosts = StepProcessPool(media_root=root, allow=[ip_network("127.0.0.1/32")], fork_server=server)
            await hosts.start()
            try:
                await _warm(_Studio(hosts, root, rounds))
                for kind in kinds:
                    print(f"{kind.name} …", flush=True)
                    try:
                        result = await _Studio(hosts, root, rounds).measured(kind)
                    except Exception:
                        traceback.print_exc()
                        continue
                    _path(folder, kind).write_text(json.dumps(result, indent=1, ensure_ascii=False))
                    for name, cell in result["cells"].items():
                        if cell["wrong"]:
                            print(f"  {name}: {'; '.join(cell['wrong'])}", flush=True)
            finally:
                await hosts.stop()


async def _warm(studio: _Studio) -> None:
    """Run one step, because the first one waits for the start of its process."""
    (studio.root / "in").mkdir()
    films.film(studio.root / "in/film.mp4", Form(seconds=1))
    await studio.step("probe_media", "film", file="in/film.mp4")


def _path(folder: Path, kind: Kind) -> Path:
    return folder / f"{KINDS.index(kind):02d}.json"


def _markdown(folder: Path) -> str:
    """Return the table, followed by a list of its faults."""
    lines = [f"| kind | {' | '.join(_COLUMNS.values())} | missing | time |", f"|---|{'---|' * (len(_COLUMNS) + 2)}"]
    notes: list[str] = []
    for kind in KINDS:
        if not _path(folder, kind).exists():
            continue
        result = json.loads(_path(folder, kind).read_text())
        cells: Mapping[str, _Cell] = result["cells"]
        shown = [_cell(kind.name, name, cells.get(name), notes) for name in _COLUMNS]
        lost = sum(cell.get("frames", 0) for cell in cells.values())
        silent = max((cell.get("sound", 0.0) for cell in cells.values()), default=0.0)
        missing = "0" if not lost and silent <= _SOUND else f"{lost} frames, {silent:.2f} s"
        ratio = "-" if result["ratio"] is None else f"{result['ratio']:.1f}"
        refused = "refused" in cells.get("film", {})
        lines.append(f"| {kind.name} | {' | '.join(shown)} | {'-' if refused else missing} | {ratio} |")
    return "\n".join([*lines, "", *notes])


def _cell(kind: str, name: str, cell: _Cell | None, notes: list[str]) -> str:
    if cell is None:
        return "-"
    if cell["wrong"]:
        notes.append(f"- {kind}, {_COLUMNS[name]}: {'; '.join(cell['wrong'])}")
        return "**wrong**"
    return "refused" if "refused" in cell else f"{cell['sync']:.2f}" if "sync" in cell else "yes"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.kinds_of_source", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the folder of the results")
    parser.add_argument(
        "--only", nargs="*", metavar="KIND", default=[], help="measure only kinds whose names begin with one of these"
    )
    parser.add_argument("--again", action="store_true", help="also measure kinds that have a result")
    parser.add_argument(
        "--every",
        default="1/1",
        metavar="PLACE/OF",
        help="measure a share of the kinds, such as 1/2 or 2/2, to run several at the same time",
    )
    parser.add_argument("--untimed", action="store_true", help="do not compare the time of ingests with the same work by hand")
    parser.add_argument("--markdown", action="store_true", help="print the table of the results, and measure nothing")
    given = parser.parse_args()
    if given.markdown:
        print(_markdown(given.folder))
        return
    place, of = (int(number) for number in given.every.split("/"))
    unknown = [prefix for prefix in given.only if not any(name.startswith(prefix) for name in BY_NAME)]
    if unknown:
        parser.error(f"there is no kind {', '.join(unknown)}; there are {'; '.join(BY_NAME)}")
    given.folder.mkdir(parents=True, exist_ok=True)
    wanted = [kind for kind in KINDS if not given.only or any(kind.name.startswith(prefix) for prefix in given.only)]
    remaining = [kind for kind in wanted[place - 1 :: of] if given.again or not _path(given.folder, kind).exists()]
    print(f"{len(remaining)} kinds, load {os.getloadavg()[0]:.0f}", file=sys.stderr, flush=True)
    uvloop.run(_all(remaining, given.folder, rounds=not given.untimed))


if __name__ == "__main__":
    main()
