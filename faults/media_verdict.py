"""What became of assets, packages and captures: what clients were told beside what the log says, and the log beside the media root.

The log is folded here by rules of its own, not by the aggregate's, so a fault of the aggregate is found too.
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
    """What can be found wrong."""

    LOST = "lost"
    """Answered, and not in the log; or deleted by a client, and still there."""
    UNKNOWN = "unknown"
    """In the log, and never asked for."""
    UNENDED = "unended"
    """Generating, or removed without an end of the removal."""
    SHARED = "shared"
    """A path that two assets have."""
    FILES = "files"
    """A completed asset without its file, or with another one, or one that cannot be decoded."""
    OWNERLESS = "ownerless"
    """A published file that is of no asset, package or source."""
    TEMPORARY = "temporary"
    """A file of a run that nobody will delete."""
    EVENTS = "events"
    """An Event that does not say what became of its job."""


@dataclass(slots=True)
class AssetSeen:
    """An asset, from its events. A removed one has its `path` until `path_free`."""

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
class Found:
    """After the faults. `files` are the sizes of published ones; `unfinished` files of runs by their jobs, before housekeeping, and
    `untidied` those that it left."""

    assets: Mapping[str, AssetSeen]
    jobs: Mapping[int, JobSeen]
    events: Mapping[str, EventSeen]
    files: Mapping[str, int]
    unfinished: Mapping[int, Sequence[str]] = field(default_factory=dict)
    untidied: Mapping[int, Sequence[str]] = field(default_factory=dict)


def assets_of(conninfo: str) -> dict[str, AssetSeen]:
    """By their ids. Blocks."""
    seen: dict[str, AssetSeen] = {}
    with psycopg.connect(conninfo) as connection:
        for stream, topic, state, at in connection.execute(_EVENTS.encode()):
            take(seen, stream.partition(":")[2], topic, json.loads(bytes(state)), at)
    return seen


def take(seen: dict[str, AssetSeen], key: str, topic: str, said: Mapping[str, Any], at: float) -> None:
    match topic.removeprefix("asset."):
        case "requested":
            seen[key] = AssetSeen(key, said["path"], [said["job"]])
        case "discovered":
            seen[key] = AssetSeen(key, said["path"], [], State.COMPLETED, said["size"])
        case "completed":
            seen[key].state, seen[key].size, seen[key].completed_at = State.COMPLETED, said["size"], at
        case "failed":
            seen[key].state, seen[key].reason = State.FAILED, said["reason"]
        case "restarted":
            seen[key].state = State.GENERATING
            seen[key].jobs.append(said["job"])
        case "file_changed":
            seen[key].size = said["size"]
        case "removed":
            seen[key].removed, seen[key].path_free = True, not said["file_left"]
        case "file_deleted":
            seen[key].path_free = True
        case "renamed":
            pass
        case other:
            raise ValueError(f"the fold of assets does not know {other}")


def judged(tally: MediaTally, found: Found, *, readable: Callable[[str], bool]) -> Verdict[Kind]:
    """`readable` says of the path of a requested file whether it can be decoded. Blocks."""
    return Verdict.of(
        (
            *_answers(tally, found),
            *_assets(found, readable),
            *_ownerless(tally, found),
            *_temporary(found),
            *_events(tally, found),
        )
    )


def _answers(tally: MediaTally, found: Found) -> Iterator[tuple[Kind, str]]:
    for key, path in tally.assets.items():
        if key not in found.assets or found.assets[key].path != path:
            yield Kind.LOST, f"asset {key} was answered with {path}, which the log does not know"
    for key in tally.deleted:
        if key in found.assets and not found.assets[key].removed:
            yield Kind.LOST, f"asset {key} was deleted, and is there"
    for asset in found.assets.values():
        if asset.requested and asset.key not in tally.assets:
            yield Kind.UNKNOWN, f"asset {asset.key} was never asked for"
        if asset.requested and asset.removed and asset.key not in tally.deleted:
            yield Kind.UNKNOWN, f"asset {asset.key} was removed, and nobody has deleted it"


def _assets(found: Found, readable: Callable[[str], bool]) -> Iterator[tuple[Kind, str]]:
    paths = Counter(asset.path for asset in found.assets.values() if not (asset.removed and asset.path_free))
    for path, times in paths.items():
        if times > 1:
            yield Kind.SHARED, f"{path} is that of {times} assets"
    for asset in found.assets.values():
        named = f"asset {asset.key} ({asset.path})"
        if asset.removed:
            if not asset.path_free:
                yield Kind.UNENDED, f"{named} was removed, and its file was not deleted"
        elif asset.state is State.GENERATING:
            yield Kind.UNENDED, f"{named} is still generating"
        elif asset.state is State.COMPLETED:
            size = found.files.get(asset.path)
            if size is None:
                yield Kind.FILES, f"{named} has no file"
            elif size != asset.size:
                yield Kind.FILES, f"{named} has {size} bytes, and the log says {asset.size}"
            elif asset.requested and not readable(asset.path):
                yield Kind.FILES, f"{named} cannot be decoded"


def _ownerless(tally: MediaTally, found: Found) -> Iterator[tuple[Kind, str]]:
    """What a job that failed had published before is the Event's. An asset that failed keeps its path, and what is there."""
    owned = {asset.path for asset in found.assets.values() if not asset.removed} | tally.sources
    owned |= _published(found.jobs[number] for number in tally.owned.values() if number in found.jobs and found.jobs[number].failed)
    for path in found.files:
        if path not in owned:
            yield Kind.OWNERLESS, path


def _published(jobs: Iterable[JobSeen]) -> set[str]:
    return {name for job in jobs for task in job.tasks.values() for names in task.committed.values() for name in names}


def _temporary(found: Found) -> Iterator[tuple[Kind, str]]:
    for number, names in found.unfinished.items():
        if number not in found.jobs or not found.jobs[number].ended:
            yield Kind.TEMPORARY, f"{names[0]} is of a job that has not ended"
    for names in found.untidied.values():
        yield Kind.TEMPORARY, f"housekeeping leaves {names[0]}"


def _events(tally: MediaTally, found: Found) -> Iterator[tuple[Kind, str]]:
    """A package leaves the state of an Event that is public; a capture makes it that of its end."""
    for key, number in tally.owned.items():
        job, event = found.jobs.get(number), found.events[key]
        if job is None:
            yield Kind.LOST, f"job {number} of the Event {key} was answered, and the log does not know it"
        elif not job.ended:
            yield Kind.UNENDED, f"job {number} of the Event {key} is {job.phase}"
        elif event.capturing:
            yield Kind.EVENTS, f"the Event {key} is being captured, and job {number} has ended"
        elif event.state not in ((_ERROR, *_ON_DEMAND) if job.failed or job.phase is Phase.BROKEN else _ON_DEMAND):
            yield Kind.EVENTS, f"the Event {key} is {event.state}, and job {number} {'failed' if job.failed else job.phase}"
