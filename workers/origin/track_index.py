"""The index of a track of a recording: a file that only grows, with one line for each segment, in the order of the stream.

A line is written after its segment is complete, so everything that the index lists exists. A line that was only half written by a
killed process is ignored. When the first segments of a recording are removed, the remaining lines are copied to a file with a new
name.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Final

from workers.media.captions.a53 import NO_CAPTIONS, CaptionServices

_NAME: Final = "index.jsonl"
_PIECE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class IndexedSegment:
    """A segment of a track. `number` counts over all recordings of the publishing point. `at` is its start as a Unix time, `lasts`
    is in seconds. `time` and `ticks` are the same in the track's timescale; both are 0 in MPEG-2 TS. A segment without a `name` is
    a gap. `written` is the Unix time of its arrival, `source` its sequence number at the encoder."""

    number: int
    name: str
    size: int
    at: float
    lasts: float
    written: float
    time: int = 0
    ticks: int = 0
    source: int = -1

    @property
    def end(self) -> float:
        return self.at + self.lasts


@dataclass(frozen=True, slots=True)
class TrackInit:
    """The attributes of a track for players. `name` is the file of its initialization section; empty in MPEG-2 TS."""

    name: str = ""
    digest: str = ""
    kinds: tuple[str, ...] = ("video", "audio")
    codecs: str = ""
    timescale: int = 0
    width: int = 0
    height: int = 0
    channels: int = 0
    rate: int = 0
    language: str = ""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> TrackInit:
        return cls(**{**document, "kinds": tuple(document["kinds"])})


@dataclass(slots=True)
class TrackIndex:
    """The index of a track, which reads the lines that were added since the last `refresh`. `first` is the number of the first
    segment if earlier ones were removed."""

    folder: Path
    first: int | None = None
    segments: list[IndexedSegment] = field(default_factory=list)
    init: TrackInit | None = None
    ended: bool = False
    size: int = 0
    """The size of all segments in bytes."""
    longest: float = 0.0
    peak: float = 0.0
    """The highest bit rate of a segment, in bits per second."""
    captions: CaptionServices = NO_CAPTIONS
    """The captions that the pictures of the track had in any segment."""
    began: float = float("inf")
    """The Unix time at which the first segment arrived. Like `longest` and `peak`, it includes removed segments."""
    _read: int = 0
    _lock: Lock = field(default_factory=Lock)

    @property
    def file(self) -> Path:
        return self.folder / (_NAME if self.first is None else f"index-{self.first}.jsonl")

    def refresh(self) -> None:
        """Read the lines that were added. Several threads may call it."""
        with self._lock:
            self._refresh()

    def _refresh(self) -> None:
        try:
            with self.file.open("rb") as file:
                if os.fstat(file.fileno()).st_size == self._read:
                    return
                file.seek(self._read)
                data = file.read()
        except FileNotFoundError:
            return
        whole = data.rfind(b"\n") + 1
        for line in data[:whole].splitlines():
            self._take(line)
        self._read += whole

    def _take(self, line: bytes) -> None:
        try:
            record = json.loads(line)
            if "init" in record:
                self.init = TrackInit.of(record["init"])
            elif "end" in record:
                self.ended = bool(record["end"])
            elif "captions" in record:
                channels, services = record["captions"]
                self.captions = CaptionServices(tuple(map(str, channels)), tuple(map(int, services)))
            elif "removed" in record:
                self.longest, self.peak, self.began = (float(record["removed"][name]) for name in ("longest", "peak", "began"))
            else:
                self._add(IndexedSegment(**record))
        except (ValueError, TypeError, KeyError):
            return  # half a line, after which a later process began a new one

    def _add(self, segment: IndexedSegment) -> None:
        self.segments.append(segment)
        self.ended = False
        self.began = min(self.began, segment.written)
        self.size += segment.size
        self.longest = max(self.longest, segment.lasts)
        if segment.name and segment.lasts > 0.1:
            self.peak = max(self.peak, segment.size * 8 / segment.lasts)


class TrackWriter:
    """Adds lines to an index. The caller must hold the lock of the publishing point."""

    def __init__(self, index: TrackIndex) -> None:
        self._index = index

    def init(self, init: TrackInit) -> None:
        self._write({"init": asdict(init)})

    def add(self, *segments: IndexedSegment) -> None:
        self._write(*(asdict(segment) for segment in segments))

    def captions(self, added: CaptionServices) -> None:
        """Record the captions of a segment. Nothing is written if they are recorded already."""
        if (every := self._index.captions | added) != self._index.captions:
            self._write({"captions": every})

    def end(self, ended: bool) -> None:
        self._write({"end": ended})

    def without(self, count: int) -> TrackIndex:
        """Return the index without its first `count` segments. Readers see it once the recording names its first segment."""
        index, first = self._index, self._index.segments[count].number
        trimmed = TrackIndex(index.folder, first)
        draft = trimmed.file.with_suffix(".draft")
        head: list[Mapping[str, Any]] = [{"removed": {"longest": index.longest, "peak": index.peak, "began": index.began}}]
        head += [{"init": asdict(index.init)}] if index.init is not None else []
        head += [{"captions": index.captions}] if index.captions else []
        with index.file.open("rb") as old, draft.open("wb") as new:
            new.write(_lines(head))
            old.seek(_place(index.file, first))
            shutil.copyfileobj(old, new, _PIECE)
        draft.rename(trimmed.file)
        return trimmed

    def clear(self) -> None:
        """Remove the files of segments that the index does not list."""
        listed = {segment.name for segment in self._index.segments} | {self._index.file.name}
        for entry in list(os.scandir(self._index.folder)):
            if entry.name not in listed and entry.name.endswith((".m4s", ".ts", ".jsonl", ".draft")):
                Path(entry.path).unlink(missing_ok=True)

    def _write(self, *lines: Mapping[str, Any]) -> None:
        descriptor = os.open(self._index.file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            torn = size and os.pread(descriptor, 1, size - 1) != b"\n"
            data = (b"\n" if torn else b"") + _lines(lines)
            if os.write(descriptor, data) != len(data):
                raise OSError(28, "no space left for the index")  # readers ignore half a line
        finally:
            os.close(descriptor)
        self._index.refresh()


def _lines(lines: Sequence[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()


def _place(file: Path, number: int) -> int:
    """Return the offset of the line of a segment. Every line begins with the number of its segment, as `IndexedSegment` does."""
    place = (b"\n" + file.read_bytes()).find(b'\n{"number":%d,' % number)
    if place < 0:
        raise ValueError("the index does not list a segment that it has")
    return place
