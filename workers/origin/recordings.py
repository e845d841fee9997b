"""The recordings of one publishing point on disk: one for each session. Only the highest session may write.

Several processes share the folder. All changes are made under a lock of the file system, which ends with the process that holds it,
and by atomic steps.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import islice, takewhile
from math import inf
from pathlib import Path
from secrets import token_hex
from threading import Lock, RLock
from typing import Any, Final

from workers.origin.limits import LEAST_SEGMENTS, RefusalReason, UploadRefused, session_replaced
from workers.origin.track_index import TrackIndex, TrackWriter

INCOMING: Final = "incoming"
_STATE: Final = "point.json"
_RECORDING: Final = "recording.json"
_LOCK: Final = "lock"
MOST_TRACKS: Final = 16
_GRACE: Final = 30.0


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """The stored state of a publishing point. `session` is the lowest that may write, `recordings` the number of recordings so far,
    `numbers` the first number of each track in the recording of that session. Tokens that were issued until `revoked`, a Unix time,
    are void."""

    session: int = -1
    recordings: int = 0
    numbers: Mapping[str, int] = field(default_factory=dict)
    revoked: float = 0.0


@dataclass(frozen=True, slots=True)
class RecordingState:
    """The stored state of a recording. `epoch` is the Unix time at which the media time is 0, `window` the DVR window in seconds
    that the encoder requested. `described` holds the descriptions of tracks in master playlists, `kept` the number of the first
    segment of a track whose earlier ones were removed. `ended` is a Unix time; None while more may be sent."""

    session: int
    ordinal: int
    began: float
    epoch: float | None = None
    window: float | None = None
    tracks: tuple[str, ...] = ()
    described: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    kept: Mapping[str, int] = field(default_factory=dict)
    ended: float | None = None


class SessionRecording:
    """The recording of one session. The state is read again by `refresh`. Several threads may use it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state: RecordingState
        self.tracks: dict[str, TrackIndex] = {}
        self._stamp: tuple[int, int] = (0, 0)
        self._lock = RLock()

    def refresh(self) -> bool:
        """Read the state and the indexes again. Return False if the recording does not exist."""
        with self._lock:
            return self._refresh()

    def _refresh(self) -> bool:
        try:
            with (self.folder / _RECORDING).open("rb") as file:
                status = os.fstat(file.fileno())
                if (status.st_ino, status.st_mtime_ns) != self._stamp:
                    document = json.load(file)
                    state = RecordingState(**{**document, "tracks": tuple(document["tracks"])})
                    if state.began != getattr(self, "state", state).began:
                        self.tracks = {}  # the recording was replaced by another one
                    self.state = state
                    self._stamp = (status.st_ino, status.st_mtime_ns)
        except (FileNotFoundError, ValueError, TypeError):
            return False
        old_tracks = {name: self.tracks.get(name) for name in self.state.tracks}
        tracks = {
            name: track if track is not None and track.first == self.state.kept.get(name) else self._index(name)
            for name, track in old_tracks.items()
        }
        for track in tracks.values():
            track.refresh()
        self.tracks = tracks
        return True

    def _index(self, name: str) -> TrackIndex:
        return TrackIndex(self.folder / f"t-{name}", self.state.kept.get(name))

    @property
    def filled(self) -> bool:
        return any(track.segments for track in self.tracks.values())

    @property
    def ended(self) -> bool:
        """True if the encoder has said so, or another session has begun."""
        filled = [track for track in self.tracks.values() if track.segments]
        return self.state.ended is not None or (bool(filled) and all(track.ended for track in filled))

    @property
    def written(self) -> float:
        """The Unix time at which the last segment arrived."""
        return max((track.segments[-1].written for track in self.tracks.values() if track.segments), default=self.state.began)

    @property
    def end(self) -> float:
        """The end of the recorded stream, in the time of the stream."""
        return max((track.segments[-1].end for track in self.tracks.values() if track.segments), default=0.0)

    @property
    def size(self) -> int:
        return sum(track.size for track in self.tracks.values())

    def write(self, state: RecordingState) -> None:
        """Write the state. The caller must hold the lock."""
        with self._lock:
            put(self.folder / _RECORDING, asdict(state))
            self.state, self._stamp = state, (0, 0)

    def removable(self, track: TrackIndex, *, before: float, window: float) -> int:
        """Return the number of segments of a track that arrived before a Unix time and left the live window so long ago that no
        player requests them any more. Without a `window` all but the last may be removed."""
        since = self.end - (self.state.window or window) - _GRACE if window else inf
        most = max(len(track.segments) - LEAST_SEGMENTS, 0)
        gone = takewhile(lambda segment: segment.written < before and segment.end <= since, islice(track.segments, most))
        return sum(1 for _ in gone)


class Points:
    """The publishing points below a directory. There is one object for each in a process, so that an index of a day is not read for
    every request."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._points: dict[str, RecordedPoint] = {}
        self._lock = Lock()

    def get(self, name: str) -> RecordedPoint:
        with self._lock:
            point = self._points.get(name) or RecordedPoint(self._root / name)
            if point.folder.is_dir():  # an arbitrary name of a request is not cached
                self._points[name] = point
            return point

    def all(self) -> list[RecordedPoint]:
        try:
            names = [entry.name for entry in os.scandir(self._root) if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            names = []
        with self._lock:
            self._points = {name: point for name, point in self._points.items() if name in names}
        return [self.get(name) for name in names if not name.startswith(".")]


class RecordedPoint:
    """A publishing point. Several threads may use it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._recordings: dict[int, SessionRecording] = {}
        self._lock = Lock()

    def state(self) -> StoredPoint | None:
        """Return the state; None if nothing was ever sent."""
        try:
            return StoredPoint(**json.loads((self.folder / _STATE).read_bytes()))
        except FileNotFoundError:
            return None

    def recordings(self) -> list[SessionRecording]:
        """Return all recordings that exist, the oldest first."""
        try:
            sessions = [int(name) for name in os.listdir(self.folder) if name.isascii() and name.isdigit()]
        except FileNotFoundError:
            return []
        with self._lock:
            recordings = {
                session: self._recordings.get(session) or SessionRecording(self.folder / str(session))
                for session in sorted(sessions)
            }
            self._recordings = recordings
        return [recording for recording in recordings.values() if recording.refresh()]

    def recording(self, session: int) -> SessionRecording:
        with self._lock:
            recording = self._recordings.get(session) or SessionRecording(self.folder / str(session))
            self._recordings = {**self._recordings, session: recording}
        recording.refresh()
        return recording

    def _new(self, session: int) -> SessionRecording:
        """Return a recording without the cached state of a removed one of the same session."""
        with self._lock:
            self._recordings = {number: recording for number, recording in self._recordings.items() if number != session}
        return self.recording(session)

    @contextmanager
    def locked(self) -> Iterator[None]:
        descriptor = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def check(self, session: int, *, issued: float = inf) -> StoredPoint:
        """Raise `UploadRefused` if the session may not write. The answer stays true only while the lock is held. `issued` is the
        time at which the token of the writer was issued."""
        state = self.state() or StoredPoint()
        if session < state.session:
            raise session_replaced()
        if issued <= state.revoked:
            raise UploadRefused(RefusalReason.FENCED, "This token was revoked.")
        return state

    def begin(self, session: int, *, window: float | None, now: float, issued: float = inf) -> SessionRecording:
        """Return the recording of a session, from its first write on: no earlier session can write after that."""
        self._make()
        with self.locked():
            state, recording = self.check(session, issued=issued), self.recording(session)
            if session > state.session or not recording.refresh():
                recording = self._new(session)
                numbers = self._end_others(now)
                (recording.folder / INCOMING).mkdir(parents=True, exist_ok=True)
                recording.write(RecordingState(session, state.recordings, now, window=window))
                numbers = {**state.numbers, **numbers}
                put(self.folder / _STATE, asdict(StoredPoint(session, state.recordings + 1, numbers, state.revoked)))
            if window is not None and window != recording.state.window:
                recording.write(replace(recording.state, window=window))
            return self.recording(session)

    def end(self, session: int, *, now: float, issued: float = inf) -> None:
        """End a session permanently: only a later one writes again. A second call changes nothing."""
        self._make()
        with self.locked():
            recording, state = self.recording(session), self.state() or StoredPoint()
            if state.session == session + 1 and recording.refresh() and not (self.folder / str(session + 1)).is_dir():
                return
            state = self.check(session, issued=issued)
            numbers = {**state.numbers, **self._end_others(now)}
            put(self.folder / _STATE, asdict(replace(state, session=session + 1, numbers=numbers)))

    def revoke(self, *, now: float) -> None:
        """Revoke all tokens that were issued until now."""
        self._make()
        with self.locked():
            put(self.folder / _STATE, asdict(replace(self.state() or StoredPoint(), revoked=now)))

    def trim(self, recording: SessionRecording, *, before: float, window: float) -> int:
        """Remove the first segments of a recording that continues: those that arrived before a Unix time and are not in the live
        window. Return their number. If the process is killed in between, the next call removes the remaining files."""
        with self.locked():
            if not recording.refresh():
                return 0
            counts = {name: recording.removable(track, before=before, window=window) for name, track in recording.tracks.items()}
            shorter = {name: TrackWriter(recording.tracks[name]).without(count) for name, count in counts.items() if count}
            if shorter:
                firsts = {name: track.first for name, track in shorter.items() if track.first is not None}
                recording.write(replace(recording.state, kept={**recording.state.kept, **firsts}))
                recording.refresh()
            for name in shorter:
                TrackWriter(recording.tracks[name]).clear()
        return sum(counts.values())

    def remove(self, recording: SessionRecording, *, still: Callable[[SessionRecording], bool]) -> bool:
        """Delete a recording unless `still` says that it has changed. It is renamed first, so no reader sees half of it."""
        gone = self.folder / f".gone-{token_hex(8)}"
        with self.locked():
            if not recording.refresh() or not still(recording):
                return False
            recording.folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
        return True

    def _make(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if not stat.S_ISDIR(self.folder.lstat().st_mode):
            raise UploadRefused(RefusalReason.BUSY, "The folder of this publishing point is a link, which is not followed.")

    def _end_others(self, now: float) -> dict[str, int]:
        """End all recordings, and return the next number of each track: nothing more is added to them."""
        numbers: dict[str, int] = {}
        for recording in self.recordings():
            if recording.state.ended is None:
                recording.write(replace(recording.state, ended=now))
            shutil.rmtree(recording.folder / INCOMING, ignore_errors=True)
            numbers |= {name: track.segments[-1].number + 1 for name, track in recording.tracks.items() if track.segments}
        return numbers


def put(path: Path, document: Mapping[str, Any]) -> None:
    """Replace a file by a JSON document atomically."""
    put_text(path, json.dumps(document))


def put_text(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{token_hex(8)}")
    try:
        draft.write_text(text)
        draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)
