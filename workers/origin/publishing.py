"""Publishing what came: segments get a number, a time and a line in the index, under the lock of their publishing point.

All of it blocks, and is called in threads.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from math import ceil
from pathlib import Path
from time import time as unix_time
from typing import Final

from workers.media.captions.segments import segment_captions
from workers.media.errors import Unreadable
from workers.media.fragments import Fragment, Init, read_fragments, read_init, read_moofs
from workers.media.transport_stream import PACKET, is_packets
from workers.origin.incoming_playlist import Incoming, Listed, Master, read_playlist
from workers.origin.names import Upload
from workers.origin.recordings import INCOMING, MOST_TRACKS, Point, Recording, put_text
from workers.origin.refusals import UploadRefused, Why
from workers.origin.track_index import Segment, TrackIndex, TrackInit, TrackWriter

MOST_INIT: Final = 1024 * 1024
_MOST_GAPS: Final = 300
_BACK: Final = 1.0
_HOLE: Final = 0.5
_FARTHEST: Final = 86_400.0
_CLOCKS_APART: Final = 60.0
_WAITING: Final = "playlist-"


@dataclass(frozen=True, slots=True)
class Arrived:
    """A whole segment in a file of its own. Without a `fragment` it is MPEG-2 TS. `source` is its number at the encoder."""

    file: Path
    lasts: float
    fragment: Fragment | None
    source: int = -1
    at: float | None = None


class Publishing:
    """What one session adds to one publishing point. A segment that came before its predecessor waits for it for `patience`
    seconds: encoders with a connection for each segment may overtake themselves. What publishes gives whether one waits so."""

    def __init__(self, point: Point, session: int, *, patience: float) -> None:
        self._point = point
        self._session = session
        self._patience = patience

    @property
    def point(self) -> str:
        return self._point.folder.name

    def keep(self, draft: Path, upload: Upload, *, most: int, now: float) -> bool:
        """A file that a playlist will name."""
        with self._point.locked():
            self._point.check(self._session)
            folder = draft.parent
            if sum(1 for one in os.scandir(folder) if not one.name.startswith(".")) >= most:
                raise UploadRefused(Why.TOO_FAST, f"More than {most} files came that no playlist lists.")
            draft.rename(folder / upload.digest)
            return self._waiting(now)

    def waiting(self, *, now: float) -> bool:
        """What playlists name that came before all of their segments, as far as these are there now."""
        with self._point.locked():
            self._point.check(self._session)
            return self._waiting(now)

    def _waiting(self, now: float) -> bool:
        recording = self._point.recording(self._session)
        kept = [one for file in list((recording.folder / INCOMING).glob(f"{_WAITING}*")) if (one := _kept(file)) is not None]
        held = [self._playlist(recording, upload, found, text=text, now=now) for upload, found, text in kept]
        return any(held)

    def playlist(self, upload: Upload, incoming: Incoming, *, text: str, now: float) -> bool:
        """The segments that it names and that were not published yet.

        An encoder with several connections may be faster with the playlist than with a segment: then it is kept until that came.
        Where a later one was faster than this one, that is the one to keep."""
        with self._point.locked():
            self._point.check(self._session)
            recording = self._point.recording(self._session)
            kept = _kept(_waiting_for(recording, upload))
            held = self._playlist(recording, upload, incoming, text=text, now=now)
            if kept is None or not kept[1].later_than(incoming):
                return held
            return self._playlist(recording, *kept[:2], text=kept[2], now=now)

    def _playlist(self, recording: Recording, upload: Upload, incoming: Incoming, *, text: str, now: float) -> bool:
        if not incoming.segments and upload.track not in recording.tracks:
            return False
        index = self._track(recording, upload.track)
        last = max((one.source for one in index.segments[-50:]), default=-1)
        fresh = [one for one in incoming.segments if one.sequence > last]
        if not fresh and incoming.segments and incoming.segments[-1].sequence < last - 1:
            raise UploadRefused(Why.FENCED, "The playlist counts from an earlier number than before; that takes a new session.")
        waiting = _waiting_for(recording, upload)
        waiting.unlink(missing_ok=True)
        arrived = [_arrived(recording.folder / INCOMING / Upload("segment", one.path).digest) for one in fresh]
        there = [one for one, came in zip(fresh, arrived, strict=True) if came is not None]
        held = _held(arrived, patience=self._patience)
        if held:
            there = there[: arrived.index(None)]
        self._listed(recording, index, fresh, there=there, now=now)
        if fresh and (not there or there[-1] is not fresh[-1]):
            put_text(waiting, f"{upload.path}\n{text}")
        elif incoming.ended and not index.ended and index.segments:
            TrackWriter(index).end(True)
        return held

    def _listed(
        self, recording: Recording, index: TrackIndex, fresh: Sequence[Listed], *, there: Sequence[Listed], now: float
    ) -> None:
        """What did not come before something that did is a gap."""
        files = recording.folder / INCOMING
        last = there[-1].sequence if there else -1
        missing = 0.0
        behind = sum(one.lasts for one in there)
        for one in fresh:
            if one.sequence > last:
                break
            if one not in there:
                missing += one.lasts
                continue
            file = files / Upload("segment", one.path).digest
            init = self._init_of(recording, index, one, files)
            fragment = read_fragments(read_moofs(file, most=MOST_INIT), init) if init is not None else None
            if fragment is None:
                _check_ts(file)
            arrived = Arrived(file, one.lasts, fragment, one.sequence, one.at)
            self._add(recording, index, arrived, now=now, behind=behind, missing=missing)
            file.unlink(missing_ok=True)
            missing, behind = 0.0, behind - one.lasts

    def _init_of(self, recording: Recording, index: TrackIndex, one: Listed, files: Path) -> Init | None:
        if one.init is None:
            if index.init is None:
                TrackWriter(index).init(TrackInit())
            elif index.init.name:
                raise Unreadable("the playlist names no initialization section any more")
            return None
        file = files / Upload("segment", one.init).digest
        if index.init is not None and index.init.name and not file.is_file():
            return _known_init(index)
        if not file.is_file():
            raise Unreadable("the initialization section did not come")
        if file.stat().st_size > MOST_INIT:
            raise Unreadable("the initialization section is too large")
        return self._init(recording, index, file.read_bytes())

    def begun(self, track: str) -> None:
        """A stream of fragments has begun, so players wait for it."""
        with self._point.locked():
            self._point.check(self._session)
            self._track(self._point.recording(self._session), track)

    def init(self, track: str, data: bytes) -> Init:
        """The initialization section of a stream of fragments."""
        with self._point.locked():
            self._point.check(self._session)
            recording = self._point.recording(self._session)
            return self._init(recording, self._track(recording, track), data)

    def known_init(self, track: str) -> Init:
        """That of an earlier request."""
        with self._point.locked():
            index = self._point.recording(self._session).tracks.get(track)
            if index is None or index.init is None or not index.init.name:
                raise Unreadable("no initialization section came before the first fragment")
            return _known_init(index)

    def _init(self, recording: Recording, index: TrackIndex, data: bytes) -> Init:
        init, digest = read_init(data), sha256(data).hexdigest()
        if index.init is not None:
            if index.init.digest != digest:
                raise UploadRefused(Why.FENCED, "The coding is another one than before; that takes a new session.")
            return init
        draft = index.folder / ".init.mp4"
        draft.write_bytes(data)
        draft.rename(index.folder / "init.mp4")
        main, sound = init.main, next((one for one in init.media if one.kind == "audio"), None)
        TrackWriter(index).init(
            TrackInit(
                "init.mp4",
                digest,
                tuple(sorted(init.kinds)),
                init.codecs,
                main.timescale,
                main.width,
                main.height,
                sound.channels if sound else 0,
                sound.rate if sound else 0,
                sound.language if sound else "",
            )
        )
        return init

    def fragments(self, track: str, fragment: Fragment, *, file: Path, timescale: int, now: float) -> None:
        """A segment of a stream of fragments."""
        with self._point.locked():
            self._point.check(self._session)
            recording = self._point.recording(self._session)
            lasts = fragment.lasts / timescale
            self._add(recording, self._track(recording, track), Arrived(file, lasts, fragment), now=now, behind=lasts)
            file.unlink(missing_ok=True)

    def ended(self, track: str) -> None:
        with self._point.locked():
            self._point.check(self._session)
            index = self._point.recording(self._session).tracks.get(track)
            if index is not None and index.segments and not index.ended:
                TrackWriter(index).end(True)

    def master(self, master: Master) -> None:
        """What it says of media playlists is kept for what cannot be seen in their segments."""
        with self._point.locked():
            self._point.check(self._session)
            recording = self._point.recording(self._session)
            told = {Upload("playlist", path).track: asdict(one) for path, one in master.tracks.items()}
            if told != recording.state.described:
                recording.write(replace(recording.state, described=told))

    def _track(self, recording: Recording, name: str) -> TrackIndex:
        if name not in recording.tracks:
            if len(recording.tracks) >= MOST_TRACKS:
                raise UploadRefused(Why.TOO_LARGE, f"A publishing point has at most {MOST_TRACKS} renditions.")
            (recording.folder / f"t-{name}").mkdir(exist_ok=True)
            recording.write(replace(recording.state, tracks=(*recording.state.tracks, name)))
            recording.refresh()
        return recording.tracks[name]

    def _add(
        self, recording: Recording, index: TrackIndex, arrived: Arrived, *, now: float, behind: float, missing: float = 0.0
    ) -> None:
        """Links the file to its place, then writes the line: whoever is killed between leaves nothing that anybody sees."""
        previous = index.segments[-1] if index.segments else None
        fragment, init = arrived.fragment, index.init
        scale = init.timescale if init is not None and init.timescale else 1
        if fragment is not None:
            time, lasts = fragment.time / scale, fragment.lasts / scale
            if previous is not None and fragment.time < previous.time + max(previous.ticks / 2, previous.ticks - _BACK * scale):
                raise UploadRefused(Why.FENCED, "The time stamps go back; that takes a new session.")
        else:
            time = (previous.end - (recording.state.epoch or 0.0) if previous is not None else 0.0) + missing
            lasts = max(arrived.lasts, 0.001)
        if previous is None and recording.state.epoch is not None:
            _check_beside(recording, recording.state.epoch + time)
        epoch = self._epoch(recording, time, behind=behind, told=arrived.at, now=now)
        number = self._next_number(index, previous)
        if previous is not None and epoch + time - previous.end > _FARTHEST:
            raise UploadRefused(Why.FENCED, "The time stamps leave out more than a day; that takes a new session.")
        holes = _holes(previous, epoch + time, number=number, now=now)
        number += len(holes)
        name = f"{number}.ts" if fragment is None else f"{fragment.time}.m4s"
        _link(arrived.file, index.folder / name)
        ticks = (fragment.time, fragment.lasts) if fragment is not None else (0, 0)
        size = arrived.file.stat().st_size
        if init is not None and "video" in init.kinds:
            TrackWriter(index).captions(segment_captions(arrived.file, _known_init(index) if fragment is not None else None))
        TrackWriter(index).add(*holes, Segment(number, name, size, epoch + time, lasts, now, *ticks, arrived.source))

    def _next_number(self, index: TrackIndex, previous: Segment | None) -> int:
        if previous is not None:
            return previous.number + 1
        state = self._point.state()
        return 0 if state is None else state.numbers.get(index.folder.name.removeprefix("t-"), 0)

    def _epoch(self, recording: Recording, time: float, *, behind: float, told: float | None, now: float) -> float:
        """When the media time was 0: as the encoder tells where its clock is right, else such that the last segment ends now. Never
        before the end of the recording before."""
        known = recording.state.epoch
        if known is not None:
            return known
        began = told if told is not None and abs(told - (now - behind)) <= _CLOCKS_APART else now - behind
        others = [one.end for one in self._point.recordings() if one.state.session < self._session]
        epoch = max([began, *others]) - time
        recording.write(replace(recording.state, epoch=epoch))
        return epoch


def _known_init(index: TrackIndex) -> Init:
    assert index.init is not None
    return read_init((index.folder / index.init.name).read_bytes())


def _check_beside(recording: Recording, at: float) -> None:
    """The tracks of a session have one clock, by which the first segment of a further track must be near the others."""
    others = [one.segments for one in recording.tracks.values() if one.segments]
    if others and not min(one[0].at for one in others) - _FARTHEST <= at <= recording.end + _FARTHEST:
        raise UploadRefused(Why.MALFORMED, "The time stamps are more than a day away from those of the other tracks.")


def _waiting_for(recording: Recording, upload: Upload) -> Path:
    """Where a playlist is kept that came before all of its segments."""
    return recording.folder / INCOMING / f"{_WAITING}{upload.digest}"


def _kept(file: Path) -> tuple[Upload, Incoming, str] | None:
    """A playlist that waits, what it lists, and its text."""
    try:
        path, _, text = file.read_text().partition("\n")
    except FileNotFoundError:
        return None
    found = read_playlist(text.encode(), path)
    return (Upload("playlist", path), found, text) if isinstance(found, Incoming) else None


def _arrived(file: Path) -> float | None:
    """When it came, a Unix time; None: it did not."""
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return None


def _held(arrived: Sequence[float | None], *, patience: float) -> bool:
    """Whether one that did not come is still waited for by those after it."""
    if None not in arrived:
        return False
    later = [came for came in arrived[arrived.index(None) :] if came is not None]
    return bool(later) and 0 <= unix_time() - min(later) < patience


def _holes(previous: Segment | None, at: float, *, number: int, now: float) -> list[Segment]:
    """Entries for the time in which nothing came."""
    hole = 0.0 if previous is None else at - previous.end
    if previous is None or hole <= _HOLE:
        return []
    count = min(max(ceil(hole / max(previous.lasts, 1.0) - 0.01), 1), _MOST_GAPS)
    each = hole / count
    return [Segment(number + one, "", 0, previous.end + one * each, each, now) for one in range(count)]


def _link(file: Path, to: Path) -> None:
    with suppress(FileNotFoundError):
        to.unlink()  # of a process that was killed before it wrote the line
    os.link(file, to)


def _check_ts(file: Path) -> None:
    size = file.stat().st_size
    with file.open("rb") as opened:
        begun = opened.read(2 * PACKET)
    if size % PACKET or not is_packets(begun):
        raise UploadRefused(
            Why.NOT_MEDIA, "A segment is neither MPEG-2 TS nor a fragment whose playlist names its initialization section."
        )
