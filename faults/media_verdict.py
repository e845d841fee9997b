"""The outcome of assets, packages and captures: the answers to clients compared with the log, and the log compared with the media
root.

The log is folded here by separate rules, not by the aggregate's, so faults of the aggregate are found too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import psycopg

from faults.findings import Verdict
from faults.jobs_log import JobSeen, Phase
from faults.media_load import MediaTally

_EVENTS = """
SELECT originator_id, topic, state, extract(epoch FROM recorded_at)::float8
FROM events WHERE originator_id LIKE 'asset:%%' ORDER BY position
"""
_ON_DEMAND: Final = ("VOD_PRIVATE", "VOD_PUBLIC")
_ERROR: Final = "VOD_ERROR"


class State(StrEnum):
    GENERATING = "generating"
    COMPLETED = "completed"
    FAILED = "failed"


class Kind(StrEnum):
    """The kinds of violations."""

    LOST = "lost"
    """An asset that was answered and is not in the log, or that a client deleted and still exists."""
    UNKNOWN = "unknown"
    """An asset in the log that was never requested."""
    UNENDED = "unended"
    """An asset that is still generating, or whose removal has not ended."""
    SHARED = "shared"
    """A path that two assets have."""
    FILES = "files"
    """A completed asset without its file, with another file, or with one that cannot be decoded."""
    OWNERLESS = "ownerless"
    """A published file that belongs to no asset, package or source."""
    TEMPORARY = "temporary"
    """A file of a run that will not be deleted."""
    EVENTS = "events"
    """An Event that does not show the outcome of its job."""


@dataclass(slots=True)
class AssetSeen:
    """An asset, from its events. A removed asset has its `path` until `path_free`."""

    key: str
    path: str
    jobs: list[int]
    state: State = State.GENERATING
    size: int | None = None
    reason: str = ""
    removed: bool = False
    path_free: bool = False
    completed_at: float | None = None

    @property
    def requested(self) -> bool:
        return bool(self.jobs)


@dataclass(frozen=True, slots=True)
class EventSeen:
    """An Event that owns a job, as a client sees it."""

    state: str
    capturing: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    """The observations after the faults.

    `files` are the sizes of published files; `unfinished` the files of runs by their jobs, before housekeeping, and `untidied`
    those that housekeeping left.
    """

    assets: Mapping[str, AssetSeen]
    jobs: Mapping[int, JobSeen]
    events: Mapping[str, EventSeen]
    files: Mapping[str, int]
    unfinished: Mapping[int, Sequence[str]] = field(default_factory=dict)
    untidied: Mapping[int, Sequence[str]] = field(default_factory=dict)


def assets_of(conninfo: str) -> dict[str, AssetSeen]:
    """Return the assets by their ids. This blocks."""
    seen: dict[str, AssetSeen] = {}
    with psycopg.connect(conninfo) as connection:
        for stream, topic, state, at in connection.execute(_EVENTS.encode()):
            take(seen, stream.partition(":")[2], topic, json.loads(bytes(state)), at)
    return seen


def take(seen: dict[str, AssetSeen], key: str, topic: str, content: Mapping[str, Any], at: float) -> None:
    match topic.removeprefix("asset."):
        case "requested" | "caption_requested":
            seen[key] = AssetSeen(key, content["path"], [content["job"]])
        case "discovered" | "caption_discovered":
            seen[key] = AssetSeen(key, content["path"], [], State.COMPLETED, content["size"])
        case "completed":
            seen[key].state, seen[key].size, seen[key].completed_at = State.COMPLETED, content["size"], at
        case "failed":
            seen[key].state, seen[key].reason = State.FAILED, content["reason"]
        case "restarted" | "caption_replaced":
            seen[key].state = State.GENERATING
            seen[key].jobs.append(content["job"])
        case "file_changed":
            seen[key].size = content["size"]
        case "removed":
            seen[key].removed, seen[key].path_free = True, not content["file_left"]
        case "file_deleted":
            seen[key].path_free = True
        case "renamed":
            pass
        case other:
            raise ValueError(f"the fold of assets does not know {other}")


def judge(tally: MediaTally, evidence: Evidence, *, readable: Callable[[str], bool]) -> Verdict[Kind]:
    """Return the verdict. `readable` returns True if the file of a requested asset can be decoded. This blocks."""
    return Verdict.of(
        (
            *_answers(tally, evidence),
            *_assets(evidence, readable),
            *_ownerless(tally, evidence),
            *_temporary(evidence),
            *_events(tally, evidence),
        )
    )


def _answers(tally: MediaTally, evidence: Evidence) -> Iterator[tuple[Kind, str]]:
    for key, path in tally.assets.items():
        if key not in evidence.assets or evidence.assets[key].path != path:
            yield Kind.LOST, f"asset {key} was answered with {path}, which the log does not know"
    for key in tally.deleted:
        if key in evidence.assets and not evidence.assets[key].removed:
            yield Kind.LOST, f"asset {key} was deleted, and is there"
    for asset in evidence.assets.values():
        if asset.requested and asset.key not in tally.assets:
            yield Kind.UNKNOWN, f"asset {asset.key} was never requested"
        if asset.requested and asset.removed and asset.key not in tally.deleted:
            yield Kind.UNKNOWN, f"asset {asset.key} was removed without a request"


def _assets(evidence: Evidence, readable: Callable[[str], bool]) -> Iterator[tuple[Kind, str]]:
    paths = Counter(asset.path for asset in evidence.assets.values() if not (asset.removed and asset.path_free))
    for path, times in paths.items():
        if times > 1:
            yield Kind.SHARED, f"{path} is that of {times} assets"
    for asset in evidence.assets.values():
        named = f"asset {asset.key} ({asset.path})"
        if asset.removed:
            if not asset.path_free:
                yield Kind.UNENDED, f"{named} was removed, and its file was not deleted"
        elif asset.state is State.GENERATING:
            yield Kind.UNENDED, f"{named} is still generating"
        elif asset.state is State.COMPLETED:
            size = evidence.files.get(asset.path)
            if size is None:
                yield Kind.FILES, f"{named} has no file"
            elif size != asset.size:
                yield Kind.FILES, f"{named} has {size} bytes, and the log says {asset.size}"
            elif asset.requested and not readable(asset.path):
                yield Kind.FILES, f"{named} cannot be decoded"


def _ownerless(tally: MediaTally, evidence: Evidence) -> Iterator[tuple[Kind, str]]:
    """Yield published files without an owner. Files that a failed job had published before belong to the Event. A failed asset
    keeps its path and its file."""
    owned = {asset.path for asset in evidence.assets.values() if not asset.removed} | tally.sources
    owned |= _published(
        evidence.jobs[number] for number in tally.owned.values() if number in evidence.jobs and evidence.jobs[number].failed
    )
    for path in evidence.files:
        if path not in owned:
            yield Kind.OWNERLESS, path


def _published(jobs: Iterable[JobSeen]) -> set[str]:
    return {name for job in jobs for task in job.tasks.values() for names in task.committed.values() for name in names}


def _temporary(evidence: Evidence) -> Iterator[tuple[Kind, str]]:
    for number, names in evidence.unfinished.items():
        if number not in evidence.jobs or not evidence.jobs[number].ended:
            yield Kind.TEMPORARY, f"{names[0]} is of a job that has not ended"
    for names in evidence.untidied.values():
        yield Kind.TEMPORARY, f"housekeeping leaves {names[0]}"


def _events(tally: MediaTally, evidence: Evidence) -> Iterator[tuple[Kind, str]]:
    """Yield Events with a wrong state. A package leaves the state of a public Event unchanged; a capture sets it at its end."""
    for key, number in tally.owned.items():
        job, event = evidence.jobs.get(number), evidence.events[key]
        if job is None:
            yield Kind.LOST, f"job {number} of the Event {key} was answered, and the log does not know it"
        elif not job.ended:
            yield Kind.UNENDED, f"job {number} of the Event {key} is {job.phase}"
        elif event.capturing:
            yield Kind.EVENTS, f"the Event {key} is being captured, and job {number} has ended"
        elif event.state not in ((_ERROR, *_ON_DEMAND) if job.failed or job.phase is Phase.BROKEN else _ON_DEMAND):
            yield Kind.EVENTS, f"the Event {key} is {event.state}, and job {number} {'failed' if job.failed else job.phase}"
