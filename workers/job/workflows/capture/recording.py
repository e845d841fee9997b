"""The recording of one step, for the step that joins it: all segments one after another in one file, and an index of them.

So ffmpeg never runs in a process that has the network, and a join that fails does not record again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import copyfileobj
from typing import Any, BinaryIO, Final, cast

from projections.kernel.sizes import MIB
from workers.job.context import StepContext
from workers.job.workflows.capture.containers import Container
from workers.job.workflows.capture.plan import CaptureGap, CapturePlan, Used
from workers.job.workflows.capture.segments import CapturedSegment, Kind, MediaResource
from workers.job.workflows.capture.shelf import Shelf
from workers.media.resources import ResourceRange

_MEDIA: Final = "recorded.media"
_INDEX: Final = "recorded.json"


@dataclass(frozen=True)
class Recording:
    """A recording.

    `start` and `end` are times of the segments, seconds since 1970 if `clocked`. `places` are those of segments and initialization
    sections in the file, by their names. The `init` of a segment has the name of its section instead of a URL.
    """

    plans: Mapping[Kind, CapturePlan]
    start: float
    end: float
    clocked: bool
    container: Container
    places: Mapping[str, ResourceRange]
    media: Path

    def copy(self, name: str, to: BinaryIO) -> None:
        part = self.places[name]
        with self.media.open("rb") as file:
            file.seek(part.first)
            remaining = part.size
            while remaining and (piece := file.read(min(remaining, MIB))):
                to.write(piece)
                remaining -= len(piece)


def keep_recording(
    context: StepContext[Any],
    plans: Mapping[Kind, CapturePlan],
    *,
    shelf: Shelf,
    bounds: tuple[float, float],
    clocked: bool,
    container: Container,
) -> None:
    """Keep the recording for the next step.

    The files of the segments stay until the step is completed, since another run may need them.
    """
    media, digest, places = context.workspace / _MEDIA, sha256(), dict[str, tuple[int, int]]()
    with media.open("wb") as file:
        for name in dict.fromkeys(name for plan in plans.values() for segment in _segments(plan) for name in _names(segment)):
            begin = file.tell()
            with shelf.path(name).open("rb") as part:
                copyfileobj(part, cast("BinaryIO", _Hashing(file, digest)), MIB)
            places[name] = (begin, file.tell() - begin)
    index_members = {
        "start": bounds[0],
        "end": bounds[1],
        "clocked": clocked,
        "container": container,
        "places": places,
        "plans": {kind: {"items": [_to_json(item) for item in plan.items], "tail": _tail(plan)} for kind, plan in plans.items()},
    }
    index = context.workspace / _INDEX
    index.write_text(json.dumps(index_members))
    context.keep(media, _MEDIA, sha256=digest.hexdigest())
    context.keep(index, _INDEX)


def read_recording(context: StepContext[Any]) -> Recording:
    index = json.loads(context.job_file(_INDEX).read_text())
    plans: dict[Kind, CapturePlan] = {}
    for kind, plan in index["plans"].items():
        items = tuple(_item(item) for item in plan["items"])
        plans[kind] = CapturePlan(items, complete=True, tail=_segment(plan["tail"]) if plan["tail"] else None)
    places = {name: ResourceRange(*place) for name, place in index["places"].items()}
    media = context.job_file(_MEDIA)
    return Recording(plans, index["start"], index["end"], index["clocked"], index["container"], places, media)


class _Hashing:
    """A writer to a file and to its digest."""

    def __init__(self, file: BinaryIO, digest: Any) -> None:
        self._file = file
        self._digest = digest

    def write(self, piece: bytes) -> int:
        self._digest.update(piece)
        return self._file.write(piece)


def _segments(plan: CapturePlan) -> Iterator[CapturedSegment]:
    yield from (used.segment for used in plan.used)
    if plan.tail is not None:
        yield plan.tail


def _names(segment: CapturedSegment) -> list[str]:
    return [*([segment.init.digest] if segment.init is not None else []), segment.name]


def _to_json(item: Used | CaptureGap) -> list[Any]:
    if isinstance(item, CaptureGap):
        return [item.begin, item.end]
    return [*_fields(item.segment), item.until]


def _tail(plan: CapturePlan) -> list[Any] | None:
    return None if plan.tail is None else _fields(plan.tail)


def _fields(segment: CapturedSegment) -> list[Any]:
    """Return the fields of a segment without its URL, which may contain a password."""
    return [
        segment.source,
        segment.kind,
        segment.epoch,
        segment.sequence,
        segment.at,
        segment.lasts,
        segment.init.digest if segment.init else None,
        segment.breaks,
    ]


def _segment(fields: list[Any]) -> CapturedSegment:
    source, kind, epoch, sequence, at, lasts, init, breaks = fields
    return CapturedSegment(
        source, kind, epoch, sequence, MediaResource(""), at, lasts, MediaResource(init) if init else None, breaks
    )


def _item(fields: list[Any]) -> Used | CaptureGap:
    return CaptureGap(*fields) if len(fields) == 2 else Used(_segment(fields[:-1]), fields[-1])
