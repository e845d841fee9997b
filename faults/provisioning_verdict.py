"""The outcome of infrastructure: what commands of Terraform made and unmade, compared with the log, the states and the answers to
clients.

It is counted from the outside, by a journal that the commands themselves write. Times are seconds since 1970, of the one clock of
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
    """The kinds of violations."""

    TOGETHER = "together"
    """Two programs of Terraform at once for one key."""
    ORPHANS = "orphans"
    """A resource that exists at the end although it is not wanted, or that no state knows."""
    MISSING = "missing"
    """A resource that is wanted at the end and does not exist."""
    DESTROYED = "destroyed"
    """A resource whose destruction began while it was wanted."""
    TWICE = "twice"
    """An end that was reported again."""
    LATE = "late"
    """An end of an earlier order that took effect."""
    FALSE = "false"
    """A resource that was wrongly reported as up, or as gone."""
    FAILED = "failed"
    """A run that failed although no disk was full."""
    SLOW = "slow"
    """An order whose end did not come in time."""
    LOST = "lost"
    """An answered change that the log does not have."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in seconds. `halt` is the time after a request in which a destruction may still begin; `converge` the time from an
    order to its end. Faults meanwhile extend both."""

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
    """The report of a run. `current` means that the run was the last one that was ordered."""

    topic: str
    run: int
    at: float
    current: bool
    since: float
    up: frozenset[str]
    reason: str


@dataclass
class Info:
    """The infrastructure of one Event, folded by separate rules. `wants` holds the times for which it was wanted."""

    event: str = ""
    key: str = ""
    run: int = 0
    since: float = 0.0
    pending: bool = False
    state: str = "opened"
    wants: list[tuple[float, float]] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)

    def take(self, topic: str, content: Mapping[str, Any], *, at: float) -> None:
        if topic == "opened":
            self.event, self.key = content["event_id"], content["infrastructure_key"]
            return
        run = content["run"]
        immediate = topic == "terminated" and run == self.run + 1
        if topic in _ENDS:
            up = frozenset(resource["name"] for resource in content.get("resources", ()))
            current = immediate or (run == self.run and self.pending)
            self.ends.append(End(topic, run, at, current, at if immediate else self.since, up, content.get("reason", "")))
        if topic in _ORDERS or immediate:
            self._want(topic == "requested", at=at)
            self.run, self.since = run, at
            self.key = content["plan"]["infrastructure_key"] if topic == "requested" else self.key
        self.pending = topic in ("requested", "termination_requested") or (topic == "reset" and content["release"])
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
    """A fault that was made, with the time in which its processes were unavailable."""

    name: str
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """The observations after everything has settled.

    `there` and `states` are the existing resources, and those of Terraform's states, by key; `wishes` holds the last answer about
    each Event: True if its infrastructure is to exist; `together` describes concurrent programs.
    """

    infos: Sequence[Info]
    journal: Sequence[Step]
    resources: frozenset[str]
    there: Mapping[str, frozenset[str]]
    states: Mapping[str, frozenset[str]]
    wishes: Mapping[str, bool]
    over: float
    together: Sequence[str] = ()
    disturbances: Sequence[Disturbance] = ()


def judge(evidence: Evidence, limits: Limits) -> Verdict[Kind]:
    return Verdict.of(
        (
            *_remains(evidence),
            *_destroyed(evidence, limits),
            *_ends(evidence, limits),
            *_truths(evidence),
            *_twice_made(evidence),
            *_answers(evidence),
            *((Kind.TOGETHER, sentence) for sentence in evidence.together),
        )
    )


def _remains(evidence: Evidence) -> Iterator[tuple[Kind, str]]:
    keys = {info.key for info in evidence.infos} | evidence.there.keys() | evidence.states.keys()
    for key in sorted(keys):
        wanted = evidence.resources if _wanted_since(evidence, key, evidence.over) is not None else frozenset()
        there, in_states = evidence.there.get(key, frozenset()), evidence.states.get(key, frozenset())
        for name in sorted(there - (wanted & in_states)):
            yield Kind.ORPHANS, f"{name} of {key} is there, wanted: {name in wanted}, in the state: {name in in_states}"
        for name in sorted(in_states - there - wanted):
            yield Kind.ORPHANS, f"{name} of {key} is in the state only"
        for name in sorted(wanted - there):
            yield Kind.MISSING, f"{name} of {key} is wanted and not there"


def _destroyed(evidence: Evidence, limits: Limits) -> Iterator[tuple[Kind, str]]:
    for step in evidence.journal:
        if step.what != _DROP:
            continue
        since = _wanted_since(evidence, step.key, step.at)
        if since is not None and step.at > _extended(evidence, since, limits.halt):
            yield Kind.DESTROYED, f"{step.name} of {step.key} began to go {step.at - since:.1f} s after it was wanted"


def _ends(evidence: Evidence, limits: Limits) -> Iterator[tuple[Kind, str]]:
    for info in evidence.infos:
        reports = Counter(end.run for end in info.ends)
        for run in (run for run, times in reports.items() if times > 1):
            yield Kind.TWICE, f"the end of run {run} of {info.event} was reported {reports[run]} times"
        for end in info.ends:
            if not end.current and reports[end.run] == 1:
                yield Kind.LATE, f"the end of run {end.run} of {info.event} counted, which was not the last order"
            if end.topic in _FAILED and not _disturbed(evidence, end.since, end.at, DISK):
                yield Kind.FAILED, f"run {end.run} of {info.event}: {end.topic}: {end.reason}"
            if end.at > _extended(evidence, end.since, limits.converge):
                yield Kind.SLOW, f"run {end.run} of {info.event} took {end.at - end.since:.1f} s"
        if info.pending:
            yield Kind.SLOW, f"run {info.run} of {info.event} has no end after {evidence.over - info.since:.1f} s"


def _twice_made(evidence: Evidence) -> Iterator[tuple[Kind, str]]:
    """Yield resources that were made again while they existed, because a state was lost."""
    there: set[tuple[str, str]] = set()
    for step in evidence.journal:
        place = (step.key, step.name)
        if step.what == _MADE and place in there:
            yield Kind.ORPHANS, f"{step.name} of {step.key} was made again while it was there"
        elif step.what in (_MADE, _DROPPED):
            (there.add if step.what == _MADE else there.discard)(place)


def _truths(evidence: Evidence) -> Iterator[tuple[Kind, str]]:
    for info in evidence.infos:
        for end in info.ends:
            there = _there(evidence, info.key, end.at)
            if end.topic == "provisioned" and (lacking := end.up - there):
                yield Kind.FALSE, f"{', '.join(sorted(lacking))} of {info.key} was reported as up"
            used = any(_wanted_between(other, end.since, end.at) for other in evidence.infos if other.key == info.key)
            if end.topic == "terminated" and there and not used:
                yield Kind.FALSE, f"{', '.join(sorted(there))} of {info.key} was reported as gone"


def _answers(evidence: Evidence) -> Iterator[tuple[Kind, str]]:
    infos = {info.event: info for info in evidence.infos}
    for event, wanted in evidence.wishes.items():
        info = infos.get(event)
        if info is None or (info.wanted_since(evidence.over) is not None) != wanted:
            yield (
                Kind.LOST,
                f"the Event {event} was answered {'a request' if wanted else 'a termination'}, and the log has another end",
            )


def there_by_key(journal: Iterable[Step]) -> Mapping[str, frozenset[str]]:
    """Return the names of existing resources, by key."""
    there: defaultdict[str, set[str]] = defaultdict(set)
    for step in journal:
        if step.what in (_MADE, _DROPPED):
            (there[step.key].add if step.what == _MADE else there[step.key].discard)(step.name)
    return {key: frozenset(names) for key, names in there.items() if names}


def _there(evidence: Evidence, key: str, at: float) -> frozenset[str]:
    steps = (step for step in evidence.journal if step.key == key and step.at <= at)
    return there_by_key(steps).get(key, frozenset())


def _wanted_since(evidence: Evidence, key: str, at: float) -> float | None:
    """Return the time since when the infrastructure has been wanted by any Event without interruption; None if it is not."""
    return min((since for info in evidence.infos if info.key == key and (since := info.wanted_since(at)) is not None), default=None)


def _wanted_between(info: Info, since: float, until: float) -> bool:
    return any(begun <= until and ended > since for begun, ended in info.wants)


def _disturbed(evidence: Evidence, since: float, until: float, name: str) -> bool:
    return any(
        disturbance.name == name and disturbance.since <= until and disturbance.until >= since
        for disturbance in evidence.disturbances
    )


def _extended(evidence: Evidence, since: float, seconds: float) -> float:
    """Return the end of this time, not counting the time of faults."""
    until = since + seconds
    for disturbance in sorted(evidence.disturbances, key=lambda disturbance: disturbance.since):
        if disturbance.since < until and disturbance.until > since:
            until += disturbance.until - max(disturbance.since, since)
    return until


def convergence(evidence: Evidence) -> tuple[list[float], list[float]]:
    """Return the seconds from an order to its end: of the calm ones, and of those with a fault meanwhile."""
    calm: list[float] = []
    disturbed: list[float] = []
    for info in evidence.infos:
        for end in info.ends:
            if end.since < end.at:
                hit = any(disturbance.since <= end.at and disturbance.until >= end.since for disturbance in evidence.disturbances)
                (disturbed if hit else calm).append(end.at - end.since)
    return calm, disturbed
