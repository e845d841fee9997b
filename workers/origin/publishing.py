"""Publishing of uploads: segments get a number, a time and a line in the index, under the lock of their publishing point.

All calls block, and are made in threads.
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
from workers.origin.incoming_playlist import IncomingPlaylist, ListedSegment, MasterPlaylist, read_playlist
from workers.origin.limits import RefusalReason, UploadRefused
from workers.origin.names import Upload
from workers.origin.recordings import INCOMING, MOST_TRACKS, RecordedPoint, SessionRecording, put_text
from workers.origin.track_index import IndexedSegment, TrackIndex, TrackInit, TrackWriter

MOST_INIT: Final = 1024 * 1024
_MOST_GAPS: Final = 300
_BACK: Final = 1.0
_HOLE: Final = 0.5
_FARTHEST: Final = 86_400.0
_CLOCKS_APART: Final = 60.0
_WAITING: Final = "playlist-"


@dataclass(frozen=True, slots=True)
class ArrivedSegment:
    """A complete segment in a file. It is MPEG-2 TS if it has no `fragment`. `source` is its number at the encoder."""

    file: Path
    lasts: float
    fragment: Fragment | None
    source: int = -1
    at: float | None = None


class Publishing:
    """Adds the uploads of one session to one publishing point. A segment that arrived before its predecessor waits for it for
    `patience` seconds: requests of an encoder with a connection for each segment may overtake each other. Methods that publish
    return True if a segment is waiting."""

    def __init__(self, point: RecordedPoint, session: int, *, patience: float) -> None:
        self._point = point
        self._session = session
        self._patience = patience

    @property
    def point(self) -> str:
        return self._point.folder.name

    def store(self, draft: Path, upload: Upload, *, most: int, now: float) -> bool:
        """Store a file that a playlist will list."""
        with self._point.locked():
            self._point.check(self._session)
            folder = draft.parent
            if sum(1 for file in os.scandir(folder) if not file.name.startswith(".")) >= most:
                raise UploadRefused(RefusalReason.TOO_FAST, f"More than {most} files were sent that no playlist lists.")
            draft.rename(folder / upload.digest)
            return self._waiting(now)

    def waiting(self, *, now: float) -> bool:
        """Publish the segments of playlists that arrived before them, as far as they have arrived now."""
        with self._point.locked():
            self._point.check(self._session)
            return self._waiting(now)

    def _waiting(self, now: float) -> bool:
        recording = self._point.recording(self._session)
        files = list((recording.folder / INCOMING).glob(f"{_WAITING}*"))
        playlists = [playlist for file in files if (playlist := _waiting_playlist(file)) is not None]
        waits = [self._playlist(recording, upload, incoming, text=text, now=now) for upload, incoming, text in playlists]
        return any(waits)

    def playlist(self, upload: Upload, incoming: IncomingPlaylist, *, text: str, now: float) -> bool:
        """Publish the segments that it lists and that were not published yet.

        The playlist of an encoder with several connections may arrive before a segment: then it is stored until the segment has
        arrived. If a later playlist arrived before this one, the later one stays stored.
        """
        with self._point.locked():
            self._point.check(self._session)
            recording = self._point.recording(self._session)
            earlier = _waiting_playlist(_waiting_for(recording, upload))
            waits = self._playlist(recording, upload, incoming, text=text, now=now)
            if earlier is None or not earlier[1].later_than(incoming):
                return waits
            return self._playlist(recording, *earlier[:2], text=earlier[2], now=now)

    def _playlist(self, recording: SessionRecording, upload: Upload, incoming: IncomingPlaylist, *, text: str, now: float) -> bool:
        if not incoming.segments and upload.track not in recording.tracks:
            return False
        index = self._track(recording, upload.track)
        last = max((segment.source for segment in index.segments[-50:]), default=-1)
        fresh = [segment for segment in incoming.segments if segment.sequence > last]
        if not fresh and incoming.segments and incoming.segments[-1].sequence < last - 1:
            raise UploadRefused(
                RefusalReason.FENCED, "The playlist counts from an earlier number than before; this requires a new session."
            )
        waiting = _waiting_for(recording, upload)
        waiting.unlink(missing_ok=True)
        arrived = [_arrival_time(recording.folder / INCOMING / Upload("segment", segment.path).digest) for segment in fresh]
        there = [segment for segment, came in zip(fresh, arrived, strict=True) if came is not None]
        waits = _is_waiting(arrived, patience=self._patience)
        if waits:
            there = there[: arrived.index(None)]
        self._publish_listed(recording, index, fresh, there=there, now=now)
        if fresh and (not there or there[-1] is not fresh[-1]):
            put_text(waiting, f"{upload.path}\n{text}")
        elif incoming.ended and not index.ended and index.segments:
            TrackWriter(index).end(True)
        return waits

    def _publish_listed(
        self,
        recording: SessionRecording,
        index: TrackIndex,
        fresh: Sequence[ListedSegment],
        *,
        there: Sequence[ListedSegment],
        now: float,
    ) -> None:
        """Publish the listed segments that have arrived. A missing segment before one that has arrived becomes a gap."""
        files = recording.folder / INCOMING
        last = there[-1].sequence if there else -1
        missing = 0.0
        behind = sum(segment.lasts for segment in there)
        for segment in fresh:
            if segment.sequence > last:
                break
            if segment not in there:
                missing += segment.lasts
                continue
            file = files / Upload("segment", segment.path).digest
            init = self._init_of(recording, index, segment, files)
            fragment = read_fragments(read_moofs(file, most=MOST_INIT), init) if init is not None else None
            if fragment is None:
                _check_ts(file)
            arrived = ArrivedSegment(file, segment.lasts, fragment, segment.sequence, segment.at)
            self._add(recording, index, arrived, now=now, behind=behind, missing=missing)
            file.unlink(missing_ok=True)
            missing, behind = 0.0, behind - segment.lasts

    def _init_of(self, recording: SessionRecording, index: TrackIndex, segment: ListedSegment, files: Path) -> Init | None:
        if segment.init is None:
            if index.init is None:
                TrackWriter(index).init(TrackInit())
            elif index.init.name:
                raise Unreadable("the playlist no longer names an initialization section")
            return None
        file = files / Upload("segment", segment.init).digest
        if index.init is not None and index.init.name and not file.is_file():
            return _stored_init(index)
        if not file.is_file():
            raise Unreadable("the initialization section was not sent")
        if file.stat().st_size > MOST_INIT:
            raise Unreadable("the initialization section is too large")
        return self._init(recording, index, file.read_bytes())

    def begun(self, track: str) -> None:
        """Record that a stream of fragments has begun, so that players wait for it."""
        with self._point.locked():
            self._point.check(self._session)
            self._track(self._point.recording(self._session), track)

    def init(self, track: str, data: bytes) -> Init:
        """Store the initialization section of a stream of fragments."""
        with self._point.locked():
            self._point.check(self._session)
            recording = self._point.recording(self._session)
            return self._init(recording, self._track(recording, track), data)

    def stored_init(self, track: str) -> Init:
        """Return the initialization section of an earlier request."""
        with self._point.locked():
            index = self._point.recording(self._session).tracks.get(track)
            if index is None or index.init is None or not index.init.name:
                raise Unreadable("no initialization section was sent before the first fragment")
            return _stored_init(index)

    def _init(self, recording: SessionRecording, index: TrackIndex, data: bytes) -> Init:
        init, digest = read_init(data), sha256(data).hexdigest()
        if index.init is not None:
            if index.init.digest != digest:
                raise UploadRefused(RefusalReason.FENCED, "The coding has changed; this requires a new session.")
            return init
        draft = index.folder / ".init.mp4"
        draft.write_bytes(data)
        draft.rename(index.folder / "init.mp4")
        main, sound = init.main, next((track for track in init.media if track.kind == "audio"), None)
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
        """Publish a segment of a stream of fragments."""
        with self._point.locked():
            self._point.check(self._session)
            recording = self._point.recording(self._session)
            lasts = fragment.lasts / timescale
            self._add(recording, self._track(recording, track), ArrivedSegment(file, lasts, fragment), now=now, behind=lasts)
            file.unlink(missing_ok=True)

    def ended(self, track: str) -> None:
        with self._point.locked():
            self._point.check(self._session)
            index = self._point.recording(self._session).tracks.get(track)
            if index is not None and index.segments and not index.ended:
                TrackWriter(index).end(True)

    def master(self, master: MasterPlaylist) -> None:
        """Store the descriptions of media playlists, for attributes that their segments do not have."""
        with self._point.locked():
            self._point.check(self._session)
            recording = self._point.recording(self._session)
            described = {Upload("playlist", path).track: asdict(track) for path, track in master.tracks.items()}
            if described != recording.state.described:
                recording.write(replace(recording.state, described=described))

    def _track(self, recording: SessionRecording, name: str) -> TrackIndex:
        if name not in recording.tracks:
            if len(recording.tracks) >= MOST_TRACKS:
                raise UploadRefused(RefusalReason.TOO_LARGE, f"A publishing point has at most {MOST_TRACKS} renditions.")
            (recording.folder / f"t-{name}").mkdir(exist_ok=True)
            recording.write(replace(recording.state, tracks=(*recording.state.tracks, name)))
            recording.refresh()
        return recording.tracks[name]

    def _add(
        self,
        recording: SessionRecording,
        index: TrackIndex,
        arrived: ArrivedSegment,
        *,
        now: float,
        behind: float,
        missing: float = 0.0,
    ) -> None:
        """Link the file to its place, then write the line of the index: if the process is killed in between, readers see nothing of
        it."""
        previous = index.segments[-1] if index.segments else None
        fragment, init = arrived.fragment, index.init
        scale = init.timescale if init is not None and init.timescale else 1
        if fragment is not None:
            time, lasts = fragment.time / scale, fragment.lasts / scale
            if previous is not None and fragment.time < previous.time + max(previous.ticks / 2, previous.ticks - _BACK * scale):
                raise UploadRefused(RefusalReason.FENCED, "The time stamps go back; this requires a new session.")
        else:
            time = (previous.end - (recording.state.epoch or 0.0) if previous is not None else 0.0) + missing
            lasts = max(arrived.lasts, 0.001)
        if previous is None and recording.state.epoch is not None:
            _check_distance(recording, recording.state.epoch + time)
        epoch = self._epoch(recording, time, behind=behind, reported=arrived.at, now=now)
        number = self._next_number(index, previous)
        if previous is not None and epoch + time - previous.end > _FARTHEST:
            raise UploadRefused(RefusalReason.FENCED, "The time stamps skip more than a day; this requires a new session.")
        holes = _holes(previous, epoch + time, number=number, now=now)
        number += len(holes)
        name = f"{number}.ts" if fragment is None else f"{fragment.time}.m4s"
        _link(arrived.file, index.folder / name)
        ticks = (fragment.time, fragment.lasts) if fragment is not None else (0, 0)
        size = arrived.file.stat().st_size
        if init is not None and "video" in init.kinds:
            TrackWriter(index).captions(segment_captions(arrived.file, _stored_init(index) if fragment is not None else None))
        TrackWriter(index).add(*holes, IndexedSegment(number, name, size, epoch + time, lasts, now, *ticks, arrived.source))

    def _next_number(self, index: TrackIndex, previous: IndexedSegment | None) -> int:
        if previous is not None:
            return previous.number + 1
        state = self._point.state()
        return 0 if state is None else state.numbers.get(index.folder.name.removeprefix("t-"), 0)

    def _epoch(self, recording: SessionRecording, time: float, *, behind: float, reported: float | None, now: float) -> float:
        """Return the Unix time at which the media time was 0: as the encoder reports it if its clock is right, else such that the
        last segment ends now. It is never before the end of the previous recording."""
        epoch = recording.state.epoch
        if epoch is not None:
            return epoch
        began = reported if reported is not None and abs(reported - (now - behind)) <= _CLOCKS_APART else now - behind
        others = [other.end for other in self._point.recordings() if other.state.session < self._session]
        epoch = max([began, *others]) - time
        recording.write(replace(recording.state, epoch=epoch))
        return epoch


def _stored_init(index: TrackIndex) -> Init:
    assert index.init is not None
    return read_init((index.folder / index.init.name).read_bytes())


def _check_distance(recording: SessionRecording, at: float) -> None:
    """Raise `UploadRefused` if the first segment of another track is far from the others: the tracks of a session have one
    clock."""
    others = [track.segments for track in recording.tracks.values() if track.segments]
    if others and not min(track[0].at for track in others) - _FARTHEST <= at <= recording.end + _FARTHEST:
        raise UploadRefused(RefusalReason.MALFORMED, "The time stamps are more than a day away from those of the other tracks.")


def _waiting_for(recording: SessionRecording, upload: Upload) -> Path:
    """Return the path of a playlist that arrived before all of its segments."""
    return recording.folder / INCOMING / f"{_WAITING}{upload.digest}"


def _waiting_playlist(file: Path) -> tuple[Upload, IncomingPlaylist, str] | None:
    """Return a waiting playlist, the segments it lists, and its text; None if there is none."""
    try:
        path, _, text = file.read_text().partition("\n")
    except FileNotFoundError:
        return None
    incoming = read_playlist(text.encode(), path)
    return (Upload("playlist", path), incoming, text) if isinstance(incoming, IncomingPlaylist) else None


def _arrival_time(file: Path) -> float | None:
    """Return the Unix time at which the file arrived; None if it has not."""
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return None


def _is_waiting(arrived: Sequence[float | None], *, patience: float) -> bool:
    """Return True if later segments still wait for one that has not arrived."""
    if None not in arrived:
        return False
    later = [came for came in arrived[arrived.index(None) :] if came is not None]
    return bool(later) and 0 <= unix_time() - min(later) < patience


def _holes(previous: IndexedSegment | None, at: float, *, number: int, now: float) -> list[IndexedSegment]:
    """Return entries for the time in which nothing arrived."""
    gap = 0.0 if previous is None else at - previous.end
    if previous is None or gap <= _HOLE:
        return []
    count = min(max(ceil(gap / max(previous.lasts, 1.0) - 0.01), 1), _MOST_GAPS)
    each = gap / count
    return [IndexedSegment(number + hole, "", 0, previous.end + hole * each, each, now) for hole in range(count)]


def _link(file: Path, to: Path) -> None:
    with suppress(FileNotFoundError):
        to.unlink()  # left by a process that was killed before it wrote the line
    os.link(file, to)


def _check_ts(file: Path) -> None:
    size = file.stat().st_size
    with file.open("rb") as opened:
        begun = opened.read(2 * PACKET)
    if size % PACKET or not is_packets(begun):
        raise UploadRefused(
            RefusalReason.NOT_MEDIA,
            "A segment is neither MPEG-2 TS nor a fragment whose playlist names its initialization section.",
        )
