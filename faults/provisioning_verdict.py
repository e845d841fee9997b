"""What became of infrastructure: what commands of Terraform made and unmade, beside the log, the states and the answers to clients.

Counted from the outside, by a journal that the commands themselves write. Times are seconds since 1970, of the one clock of
the machine.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from faults.findings import Verdict
from faults.on_air_log import NEVER

DISK: Final = "disk full"
_MADE, _DROP, _DROPPED = "made", "drop", "dropped"
_ENDS: Final = frozenset({"provisioned", "failed", "terminated", "termination_failed", "partly_terminated", "release_ended"})
_ORDERS: Final = frozenset({"requested", "termination_requested", "reset"})
_FAILED: Final = frozenset({"failed", "termination_failed"})


class Kind(StrEnum):
    """What can be found wrong."""

    TOGETHER = "together"
    """Two programs of Terraform at once for one key."""
    ORPHANS = "orphans"
    """At the end something is there that nobody wants, or that no state knows."""
    MISSING = "missing"
    """At the end something is not there that somebody wants."""
    DESTROYED = "destroyed"
    """Somebody wanted it, and its destruction began."""
    TWICE = "twice"
    """An end that was reported again."""
    LATE = "late"
    """An end of an earlier order that counted."""
    FALSE = "false"
    """Reported as up, or as gone, and it was not."""
    FAILED = "failed"
    """A run that failed, and no disk was full."""
    SLOW = "slow"
    """An order whose end did not come in time."""
    LOST = "lost"
    """An answered change that the log does not have."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds. `halt`: after a request, in which a destruction may still begin; `converge`: from an order to its end. Faults
    meanwhile extend both."""

    halt: float = 15.0
    converge: float = 60.0


@dataclass(frozen=True, slots=True)
class Step:
    """A line of the journal: `make`, `made`, `drop` or `dropped`."""

    at: float
    what: str
    key: str
    name: str


@dataclass(frozen=True, slots=True)
class End:
    """What was reported of a run, and whether it was the last one that was ordered."""

    topic: str
    run: int
    at: float
    current: bool
    since: float
    up: frozenset[str]
    reason: str


@dataclass
class Info:
    """The infrastructure of one Event, folded by rules of its own. `wants`: when something was to be there."""

    event: str = ""
    key: str = ""
    run: int = 0
    since: float = 0.0
    pending: bool = False
    state: str = "opened"
    wants: list[tuple[float, float]] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)

    def take(self, topic: str, said: Mapping[str, Any], *, at: float) -> None:
        if topic == "opened":
            self.event, self.key = said["event_id"], said["infrastructure_key"]
            return
        run = said["run"]
        immediate = topic == "terminated" and run == self.run + 1
        if topic in _ENDS:
            up = frozenset(resource["name"] for resource in said.get("resources", ()))
            current = immediate or (run == self.run and self.pending)
            self.ends.append(End(topic, run, at, current, at if immediate else self.since, up, said.get("reason", "")))
        if topic in _ORDERS or immediate:
            self._want(topic == "requested", at=at)
            self.run, self.since = run, at
            self.key = said["plan"]["infrastructure_key"] if topic == "requested" else self.key
        self.pending = topic in ("requested", "termination_requested") or (topic == "reset" and said["release"])
        self.state = topic

    def _want(self, wanted: bool, *, at: float) -> None:
        if self.wants and self.wants[-1][1] == NEVER:
            if wanted:
                return
            self.wants[-1] = (self.wants[-1][0], at)
        elif wanted:
            self.wants.append((at, NEVER))

    def wanted_since(self, at: float) -> float | None:
        return next((since for since, until in self.wants if since <= at < until), None)


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A fault that was made, with the time in which its processes were away."""

    name: str
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Found:
    """After everything has settled. `there` and `states` are the resources that are there, and those of Terraform's states, by key;
    `wishes` is what clients were answered last about each Event: whether it is to be there; `together` describes programs."""

    infos: Sequence[Info]
    journal: Sequence[Step]
    resources: frozenset[str]
    there: Mapping[str, frozenset[str]]
    states: Mapping[str, frozenset[str]]
    wishes: Mapping[str, bool]
    over: float
    together: Sequence[str] = ()
    disturbances: Sequence[Disturbance] = ()


def judged(found: Found, limits: Limits) -> Verdict[Kind]:
    return Verdict.of(
        (
            *_remains(found),
            *_destroyed(found, limits),
            *_ends(found, limits),
            *_truths(found),
            *_twice_made(found),
            *_answers(found),
            *((Kind.TOGETHER, sentence) for sentence in found.together),
        )
    )


def _remains(found: Found) -> Iterator[tuple[Kind, str]]:
    keys = {info.key for info in found.infos} | found.there.keys() | found.states.keys()
    for key in sorted(keys):
        wanted = found.resources if _wanted_since(found, key, found.over) is not None else frozenset()
        there, known = found.there.get(key, frozenset()), found.states.get(key, frozenset())
        for name in sorted(there - (wanted & known)):
            yield Kind.ORPHANS, f"{name} of {key} is there, wanted: {name in wanted}, in the state: {name in known}"
        for name in sorted(known - there - wanted):
            yield Kind.ORPHANS, f"{name} of {key} is in the state only"
        for name in sorted(wanted - there):
            yield Kind.MISSING, f"{name} of {key} is wanted and not there"


def _destroyed(found: Found, limits: Limits) -> Iterator[tuple[Kind, str]]:
    for step in found.journal:
        if step.what != _DROP:
            continue
        since = _wanted_since(found, step.key, step.at)
        if since is not None and step.at > _extended(found, since, limits.halt):
            yield Kind.DESTROYED, f"{step.name} of {step.key} began to go {step.at - since:.1f} s after it was wanted"


def _ends(found: Found, limits: Limits) -> Iterator[tuple[Kind, str]]:
    for info in found.infos:
        told = Counter(end.run for end in info.ends)
        for run in (run for run, times in told.items() if times > 1):
            yield Kind.TWICE, f"the end of run {run} of {info.event} was reported {told[run]} times"
        for end in info.ends:
            if not end.current and told[end.run] == 1:
                yield Kind.LATE, f"the end of run {end.run} of {info.event} counted, which was not the last order"
            if end.topic in _FAILED and not _disturbed(found, end.since, end.at, DISK):
                yield Kind.FAILED, f"run {end.run} of {info.event}: {end.topic}: {end.reason}"
            if end.at > _extended(found, end.since, limits.converge):
                yield Kind.SLOW, f"run {end.run} of {info.event} took {end.at - end.since:.1f} s"
        if info.pending:
            yield Kind.SLOW, f"run {info.run} of {info.event} has no end after {found.over - info.since:.1f} s"


def _twice_made(found: Found) -> Iterator[tuple[Kind, str]]:
    """A state was lost: what it had is there, and was made once more."""
    there: set[tuple[str, str]] = set()
    for step in found.journal:
        place = (step.key, step.name)
        if step.what == _MADE and place in there:
            yield Kind.ORPHANS, f"{step.name} of {step.key} was made again while it was there"
        elif step.what in (_MADE, _DROPPED):
            (there.add if step.what == _MADE else there.discard)(place)


def _truths(found: Found) -> Iterator[tuple[Kind, str]]:
    for info in found.infos:
        for end in info.ends:
            there = _there(found, info.key, end.at)
            if end.topic == "provisioned" and (lacking := end.up - there):
                yield Kind.FALSE, f"{', '.join(sorted(lacking))} of {info.key} was reported as up"
            used = any(_wanted_between(other, end.since, end.at) for other in found.infos if other.key == info.key)
            if end.topic == "terminated" and there and not used:
                yield Kind.FALSE, f"{', '.join(sorted(there))} of {info.key} was reported as gone"


def _answers(found: Found) -> Iterator[tuple[Kind, str]]:
    infos = {info.event: info for info in found.infos}
    for event, wanted in found.wishes.items():
        info = infos.get(event)
        if info is None or (info.wanted_since(found.over) is not None) != wanted:
            yield (
                Kind.LOST,
                f"the Event {event} was answered {'a request' if wanted else 'a termination'}, and the log has another end",
            )


def there_by_key(journal: Iterable[Step]) -> Mapping[str, frozenset[str]]:
    """The names of what is there."""
    there: defaultdict[str, set[str]] = defaultdict(set)
    for step in journal:
        if step.what in (_MADE, _DROPPED):
            (there[step.key].add if step.what == _MADE else there[step.key].discard)(step.name)
    return {key: frozenset(names) for key, names in there.items() if names}


def _there(found: Found, key: str, at: float) -> frozenset[str]:
    steps = (step for step in found.journal if step.key == key and step.at <= at)
    return there_by_key(steps).get(key, frozenset())


def _wanted_since(found: Found, key: str, at: float) -> float | None:
    """Since when anybody has wanted it, without a gap that is longer than none."""
    return min((since for info in found.infos if info.key == key and (since := info.wanted_since(at)) is not None), default=None)


def _wanted_between(info: Info, since: float, until: float) -> bool:
    return any(begun <= until and ended > since for begun, ended in info.wants)


def _disturbed(found: Found, since: float, until: float, name: str) -> bool:
    return any(one.name == name and one.since <= until and one.until >= since for one in found.disturbances)


def _extended(found: Found, since: float, seconds: float) -> float:
    """The end of this time, of which the time of faults does not count."""
    until = since + seconds
    for one in sorted(found.disturbances, key=lambda one: one.since):
        if one.since < until and one.until > since:
            until += one.until - max(one.since, since)
    return until


def convergence(found: Found) -> tuple[list[float], list[float]]:
    """Seconds from an order to its end: of the calm ones, and of those with a fault meanwhile."""
    calm: list[float] = []
    disturbed: list[float] = []
    for info in found.infos:
        for end in info.ends:
            if end.since < end.at:
                hit = any(one.since <= end.at and one.until >= end.since for one in found.disturbances)
                (disturbed if hit else calm).append(end.at - end.since)
    return calm, disturbed
