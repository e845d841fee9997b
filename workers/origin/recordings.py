"""The recordings of one publishing point on disk: one for each session, the highest of which may write.

Several processes share the folder. All that changes is done under a lock of the file system, which ends with the process that has
it, and by steps that are whole or not there.
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

from workers.origin.limits import LEAST_SEGMENTS
from workers.origin.refusals import UploadRefused, Why, replaced
from workers.origin.track_index import TrackIndex, TrackWriter

INCOMING: Final = "incoming"
_STATE: Final = "point.json"
_RECORDING: Final = "recording.json"
_LOCK: Final = "lock"
MOST_TRACKS: Final = 16
_GRACE: Final = 30.0


@dataclass(frozen=True, slots=True)
class PointState:
    """`session` is the lowest that may write, `recordings` how many there were, `numbers` the first number of each track
    in the recording of that session. Tokens that were issued until `revoked`, a Unix time, are void."""

    session: int = -1
    recordings: int = 0
    numbers: Mapping[str, int] = field(default_factory=dict)
    revoked: float = 0.0


@dataclass(frozen=True, slots=True)
class RecordingState:
    """`epoch` is the Unix time at which the media time is 0, `window` the DVR window in seconds that the encoder asked for.

    `described` is what master playlists said of tracks, `kept` the number of the first segment of a track where earlier ones were
    removed. `ended` is a Unix time; None while more may come."""

    session: int
    ordinal: int
    began: float
    epoch: float | None = None
    window: float | None = None
    tracks: tuple[str, ...] = ()
    described: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    kept: Mapping[str, int] = field(default_factory=dict)
    ended: float | None = None


class Recording:
    """What one session has sent. The state is read again by `refresh`. Several threads may have it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state: RecordingState
        self.tracks: dict[str, TrackIndex] = {}
        self._stamp: tuple[int, int] = (0, 0)
        self._lock = RLock()

    def refresh(self) -> bool:
        """Whether it is there."""
        with self._lock:
            return self._refresh()

    def _refresh(self) -> bool:
        try:
            with (self.folder / _RECORDING).open("rb") as file:
                status = os.fstat(file.fileno())
                if (status.st_ino, status.st_mtime_ns) != self._stamp:
                    told = json.load(file)
                    state = RecordingState(**{**told, "tracks": tuple(told["tracks"])})
                    if state.began != getattr(self, "state", state).began:
                        self.tracks = {}  # another one in its place
                    self.state = state
                    self._stamp = (status.st_ino, status.st_mtime_ns)
        except (FileNotFoundError, ValueError, TypeError):
            return False
        known = {name: self.tracks.get(name) for name in self.state.tracks}
        found = {
            name: track if track is not None and track.first == self.state.kept.get(name) else self._index(name)
            for name, track in known.items()
        }
        for track in found.values():
            track.refresh()
        self.tracks = found
        return True

    def _index(self, name: str) -> TrackIndex:
        return TrackIndex(self.folder / f"t-{name}", self.state.kept.get(name))

    @property
    def filled(self) -> bool:
        return any(track.segments for track in self.tracks.values())

    @property
    def ended(self) -> bool:
        """Whether the encoder has said so, or another session has begun."""
        filled = [track for track in self.tracks.values() if track.segments]
        return self.state.ended is not None or (bool(filled) and all(track.ended for track in filled))

    @property
    def written(self) -> float:
        """When the last segment came."""
        return max((track.segments[-1].written for track in self.tracks.values() if track.segments), default=self.state.began)

    @property
    def end(self) -> float:
        """The end of what there is, in the time of the stream."""
        return max((track.segments[-1].end for track in self.tracks.values() if track.segments), default=0.0)

    @property
    def size(self) -> int:
        return sum(track.size for track in self.tracks.values())

    def write(self, state: RecordingState) -> None:
        """Only for who has the lock."""
        with self._lock:
            put(self.folder / _RECORDING, asdict(state))
            self.state, self._stamp = state, (0, 0)

    def removable(self, track: TrackIndex, *, before: float, window: float) -> int:
        """How many segments of a track came before a Unix time, and have left the live window for so long that no player asks for
        them any more. Without a `window` all but the last may go."""
        since = self.end - (self.state.window or window) - _GRACE if window else inf
        most = max(len(track.segments) - LEAST_SEGMENTS, 0)
        gone = takewhile(lambda one: one.written < before and one.end <= since, islice(track.segments, most))
        return sum(1 for _ in gone)


class Points:
    """The publishing points below a directory, each once in a process: an index of a day is not read for every request."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, Point] = {}
        self._lock = Lock()

    def get(self, name: str) -> Point:
        with self._lock:
            found = self._known.get(name) or Point(self._root / name)
            if found.folder.is_dir():  # else it is a name that somebody tries
                self._known[name] = found
            return found

    def all(self) -> list[Point]:
        try:
            names = [one.name for one in os.scandir(self._root) if one.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            names = []
        with self._lock:
            self._known = {name: found for name, found in self._known.items() if name in names}
        return [self.get(name) for name in names if not name.startswith(".")]


class Point:
    """One publishing point. Several threads may have it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[int, Recording] = {}
        self._lock = Lock()

    def state(self) -> PointState | None:
        """None: nothing was ever sent."""
        try:
            return PointState(**json.loads((self.folder / _STATE).read_bytes()))
        except FileNotFoundError:
            return None

    def recordings(self) -> list[Recording]:
        """All that are there, the oldest first."""
        try:
            names = [int(one) for one in os.listdir(self.folder) if one.isascii() and one.isdigit()]
        except FileNotFoundError:
            return []
        with self._lock:
            known = {name: self._known.get(name) or Recording(self.folder / str(name)) for name in sorted(names)}
            self._known = known
        return [one for one in known.values() if one.refresh()]

    def recording(self, session: int) -> Recording:
        with self._lock:
            known = self._known.get(session) or Recording(self.folder / str(session))
            self._known = {**self._known, session: known}
        known.refresh()
        return known

    def _new(self, session: int) -> Recording:
        """Without what is remembered of a recording that was removed."""
        with self._lock:
            self._known = {name: one for name, one in self._known.items() if name != session}
        return self.recording(session)

    @contextmanager
    def locked(self) -> Iterator[None]:
        descriptor = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def check(self, session: int, *, issued: float = inf) -> PointState:
        """Only under the lock the answer holds until what follows is done. `issued` is when the token of the writer was. Raises
        `UploadRefused`."""
        state = self.state() or PointState()
        if session < state.session:
            raise replaced()
        if issued <= state.revoked:
            raise UploadRefused(Why.FENCED, "This token was revoked.")
        return state

    def begin(self, session: int, *, window: float | None, now: float, issued: float = inf) -> Recording:
        """The recording of a session, from its first write on: no earlier session can write any more."""
        self._make()
        with self.locked():
            state, found = self.check(session, issued=issued), self.recording(session)
            if session > state.session or not found.refresh():
                found = self._new(session)
                numbers = self._end_others(now)
                (found.folder / INCOMING).mkdir(parents=True, exist_ok=True)
                found.write(RecordingState(session, state.recordings, now, window=window))
                numbers = {**state.numbers, **numbers}
                put(self.folder / _STATE, asdict(PointState(session, state.recordings + 1, numbers, state.revoked)))
            if window is not None and window != found.state.window:
                found.write(replace(found.state, window=window))
            return self.recording(session)

    def end(self, session: int, *, now: float, issued: float = inf) -> None:
        """For ever: only a later session writes again. A second time it changes nothing."""
        self._make()
        with self.locked():
            found, state = self.recording(session), self.state() or PointState()
            if state.session == session + 1 and found.refresh() and not (self.folder / str(session + 1)).is_dir():
                return
            state = self.check(session, issued=issued)
            numbers = {**state.numbers, **self._end_others(now)}
            put(self.folder / _STATE, asdict(replace(state, session=session + 1, numbers=numbers)))

    def revoke(self, *, now: float) -> None:
        """Make all tokens void that were issued until now."""
        self._make()
        with self.locked():
            put(self.folder / _STATE, asdict(replace(self.state() or PointState(), revoked=now)))

    def trim(self, recording: Recording, *, before: float, window: float) -> int:
        """Remove the first segments of a recording that goes on: what came before a Unix time, but never of the live window. Gives
        how many. Whoever is killed between leaves files that the next one removes."""
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

    def remove(self, recording: Recording, *, still: Callable[[Recording], bool]) -> bool:
        """Unless it is not `still` what it was when that was decided. Nobody finds it from the first step on."""
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
            raise UploadRefused(Why.BUSY, "The folder of this publishing point is a link, which is not followed.")

    def _end_others(self, now: float) -> dict[str, int]:
        """The next number of each track: nothing more is added to what is there."""
        numbers: dict[str, int] = {}
        for one in self.recordings():
            if one.state.ended is None:
                one.write(replace(one.state, ended=now))
            shutil.rmtree(one.folder / INCOMING, ignore_errors=True)
            numbers |= {name: track.segments[-1].number + 1 for name, track in one.tracks.items() if track.segments}
        return numbers


def put(path: Path, told: Mapping[str, Any]) -> None:
    """In place of what was there, in one step."""
    put_text(path, json.dumps(told))


def put_text(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{token_hex(8)}")
    try:
        draft.write_text(text)
        draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)
