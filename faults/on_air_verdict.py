"""The outcome of Events on the air: what publishing points received, compared with the log and the answers to clients.

Times are seconds since 1970, of the one clock of the machine; the product's own clocks, which may be set, are not used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Final

from faults.findings import Verdict
from faults.on_air_log import NEVER, AirLog, Hold
from faults.publishing_points import POINTS, UNNUMBERED, Write

_EARLY: Final = 0.05
_REFUSED: Final = (401, 409)
_DATABASE: Final = "PostgreSQL"
ENDING: Final = ("sessions", "ffmpeg", "PostgreSQL", "clock")
"""The faults that end sessions."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Stated bounds, in seconds and bytes.

    `start` is the time from an order to the channel, from there to a segment, and between segments; `together` the time after the
    first byte of a later session in which a write of an earlier one may begin; `late` the bytes of earlier sessions after it, on
    both points; `stop` the time after a stop in which the last write may begin; `drawn` the tolerance between two clocks.
    """

    start: float = 30.0
    together: float = 0.25
    late: int = 128 * 1024
    stop: float = 10.0
    drawn: float = 1.0


class Kind(StrEnum):
    """The kinds of violations."""

    TOGETHER = "together"
    """A session that began a write after a later one of its channel had sent, or two Events on the air on one channel."""
    LATE = "late bytes"
    """An earlier session that sent more bytes than the bound after a later one had begun."""
    MISSED = "missed"
    """An order to start without a channel, though it was free, or a channel without a segment."""
    SILENT = "silent"
    """A point without segments during a transmission."""
    RESTARTED = "restarted"
    """A session that began, or wrote, after its Event had left the air."""
    CHILDREN = "children"
    """A process of an encoder that remained."""
    SCHEDULE = "schedule"
    """An Event that the schedule did not start or stop exactly once, or too early."""
    NUMBERS = "numbers"
    """A number that was not drawn for the channel, or drawn out of order, or a write without a number."""
    LOST = "lost"
    """An answered change that the log does not have."""


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A request of a client that was answered. `state` is the state of the Event then; None if it was deleted."""

    event: str
    channel: str
    state: int | None
    sent: float
    answered: float


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A fault that was made. `points` are the points that accepted nothing meanwhile."""

    name: str
    since: float
    until: float
    points: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Draw:
    """A number of a session, as the database drew it."""

    channel: str
    number: int
    at: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """The observations after the faults.

    `scheduled` holds the start and the end of Events that only the schedule started and stopped; `children` the processes of
    encoders that remained; `over` is the time of the end.
    """

    log: AirLog
    writes: Sequence[Write]
    draws: Sequence[Draw]
    requests: Sequence[AnsweredRequest]
    over: float
    scheduled: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    disturbances: Sequence[Disturbance] = ()
    children: Sequence[str] = ()


def judge(evidence: Evidence, limits: Limits) -> Verdict[Kind]:
    return Verdict.of(
        (
            *_sessions(evidence, limits),
            *_numbers(evidence, limits),
            *_orders(evidence, limits),
            *_segments(evidence, limits),
            *_stops(evidence, limits),
            *_schedule(evidence, limits),
            *_answers(evidence),
            *((Kind.CHILDREN, sentence) for sentence in evidence.children),
        )
    )


# --- sessions


@dataclass(frozen=True, slots=True)
class Overlap:
    """The data of a session that arrived after a later one of its channel had begun. `begun` counts the writes that began after the
    bound."""

    channel: str
    session: int
    seconds: float
    bytes: int
    begun: int


def overlaps(writes: Sequence[Write], *, bound: float) -> list[Overlap]:
    """Return the overlaps of all sessions that sent anything after a later one. A refused write was sent, but does not count in
    `bytes`."""
    results = []
    for channel, ours in _by_channel(writes).items():
        by_session: defaultdict[int, list[Write]] = defaultdict(list)
        for write in ours:
            if write.session != UNNUMBERED and write.pieces:
                by_session[write.session].append(write)
        later = NEVER
        for session in sorted(by_session, reverse=True):
            group = by_session[session]
            pieces = [(at, size, write) for write in group for at, size in write.pieces if at > later]
            if pieces:
                taken = sum(size for _, size, write in pieces if write.status not in _REFUSED)
                begun = sum(write.began > later + bound for write in group)
                results.append(Overlap(channel, session, max(at for at, *_ in pieces) - later, taken, begun))
            later = min(later, *(write.pieces[0][0] for write in group))
    return results


def _sessions(evidence: Evidence, limits: Limits) -> Iterator[tuple[Kind, str]]:
    for place, hold in enumerate(evidence.log.holds):
        for other in evidence.log.holds[:place]:
            if other.channel == hold.channel and other.overlaps(hold.since, hold.until):
                yield Kind.TOGETHER, f"{other.event} and {hold.event} were on the air on {hold.channel}"
    for overlap in overlaps(evidence.writes, bound=limits.together):
        named = f"session {overlap.session} of {overlap.channel}"
        if overlap.begun:
            yield Kind.TOGETHER, f"{named} began {overlap.begun} writes up to {overlap.seconds:.1f} s after a later one had sent"
        if overlap.bytes > limits.late:
            yield Kind.LATE, f"{named} sent {overlap.bytes} bytes after a later one"


def _numbers(evidence: Evidence, limits: Limits) -> Iterator[tuple[Kind, str]]:
    drawn = {(draw.channel, draw.number) for draw in evidence.draws}
    for channel, number in {(write.channel, write.session) for write in evidence.writes}:
        if number == UNNUMBERED:
            yield Kind.NUMBERS, f"a write to {channel} without a session"
        elif (channel, number) not in drawn:
            yield Kind.NUMBERS, f"session {number} of {channel} was never drawn"
    by_channel: defaultdict[str, list[Draw]] = defaultdict(list)
    for draw in evidence.draws:
        by_channel[draw.channel].append(draw)
    for draws in by_channel.values():
        for before, after in pairwise(draws):
            if after.number <= before.number:
                yield Kind.NUMBERS, f"{after.number} of {after.channel} was drawn after {before.number}"
    for draw in evidence.draws:
        since, until = draw.at - limits.drawn, draw.at + limits.drawn
        if not any(hold.channel == draw.channel and hold.overlaps(since, until) for hold in evidence.log.holds):
            yield Kind.RESTARTED, f"session {draw.number} of {draw.channel} was drawn while no Event was on the air"


# --- starts and segments


def _orders(evidence: Evidence, limits: Limits) -> Iterator[tuple[Kind, str]]:
    """Yield missed orders. An order is fulfilled by a hold of the channel that begins in time after the order, or after the other
    Events that were on the air on the channel have left it."""
    for order in evidence.log.orders:
        holds = [hold for hold in evidence.log.holds if hold.channel == order.channel]
        free = order.at
        for hold in holds:
            if hold.event != order.event and hold.overlaps(free, free + limits.start):
                free = max(free, hold.until)
        until = _extended(evidence, free, limits.start)
        if min(order.until, evidence.over) < until:
            continue
        if not any(hold.overlaps(free, until) for hold in holds):
            yield Kind.MISSED, f"the Event {order.event} was to start on {order.channel}, which was free, and did not"


def _segments(evidence: Evidence, limits: Limits) -> Iterator[tuple[Kind, str]]:
    segments = _by_channel(write for write in evidence.writes if write.segment)
    for hold in evidence.log.holds:
        if hold.failed:
            yield Kind.MISSED, f"the encoder of {hold.channel} was given up: {hold.failed}"
            continue
        until = min(hold.until, evidence.over)
        times = [(write.ended, write.point) for write in segments.get(hold.channel, ()) if hold.since < write.ended <= until]
        first = min((at for at, _ in times), default=until)
        if first > (latest := _extended(evidence, hold.since, limits.start)):
            yield Kind.MISSED, f"the Event {hold.event} on {hold.channel} had no segment for {latest - hold.since:.0f} s"
            continue
        for point in range(POINTS):
            ours = sorted(at for at, place in times if place == point)
            for before, after in pairwise((first, *ours, until)):
                if after > _extended(evidence, before, limits.start, point=point):
                    yield Kind.SILENT, f"point {point} of {hold.channel} had no segment for {after - before:.0f} s"


def _extended(evidence: Evidence, since: float, seconds: float, *, point: int | None = None) -> float:
    """Return the end of this time, not counting the time in which the point accepted nothing; without a point, in which neither
    did."""
    wanted = frozenset(range(POINTS) if point is None else (point,))
    return _later([disturbance for disturbance in evidence.disturbances if wanted <= disturbance.points], since, seconds)


def _later(disturbances: Iterable[Disturbance], since: float, seconds: float) -> float:
    """Return the end of this time, not counting that of the disturbances."""
    ill = sorted((disturbance.since, disturbance.until) for disturbance in disturbances)
    until = since + seconds
    for began, ended in ill:
        if began < until and ended > since:
            until += min(ended, NEVER) - max(began, since)
    return until


# --- stops


def _stops(evidence: Evidence, limits: Limits) -> Iterator[tuple[Kind, str]]:
    """Yield writes that began while no Event was on the air, for longer than the bound.

    The database announces a stop, so the time in which it was unavailable does not count.
    """
    away = [disturbance for disturbance in evidence.disturbances if disturbance.name.endswith(_DATABASE)]
    for channel, writes in _by_channel(evidence.writes).items():
        holds = [hold for hold in evidence.log.holds if hold.channel == channel]
        late: defaultdict[float, list[float]] = defaultdict(list)
        for write in writes:
            if not any(hold.since <= write.began < _later(away, hold.until, limits.stop) for hold in holds):
                late[max((hold.until for hold in holds if hold.until < write.began), default=0.0)].append(write.began)
        for stopped, times in late.items():
            names = dict.fromkeys(
                disturbance.name
                for disturbance in evidence.disturbances
                if disturbance.since < max(times) and disturbance.until > stopped - 10
            )
            sent = f"{channel} was sent to {len(times)} times up to {max(times) - stopped:.1f} s after the stop at {stopped:.1f}"
            yield Kind.RESTARTED, f"{sent}, about {', '.join(names) or 'nothing'}"


def _schedule(evidence: Evidence, limits: Limits) -> Iterator[tuple[Kind, str]]:
    for event, times in evidence.scheduled.items():
        for verb, planned in zip(("start", "stop"), times, strict=True):
            done = evidence.log.scheduled.get((event, verb == "start"), [])
            if len(done) != 1:
                yield Kind.SCHEDULE, f"the schedule was to {verb} the Event {event} once, and did it {len(done)} times"
            elif not planned - _EARLY <= done[0] <= planned + limits.start:
                yield Kind.SCHEDULE, f"the schedule was to {verb} the Event {event}, and did it {done[0] - planned:.1f} s late"


def _answers(evidence: Evidence) -> Iterator[tuple[Kind, str]]:
    last: dict[str, AnsweredRequest] = {}
    for request in evidence.requests:
        last[request.event] = request
    for event, request in last.items():
        state = evidence.log.states.get(event)
        if state is None or (event in evidence.log.deleted) != (request.state is None) or request.state not in (None, state):
            yield Kind.LOST, f"the Event {event} was {request.state}, and the log says {state}"


# --- figures


@dataclass(frozen=True, slots=True)
class Start:
    """The time from an order to the first segment. `calm` means that there was no fault meanwhile."""

    seconds: float
    calm: bool


def starts(evidence: Evidence) -> list[Start]:
    """Return the starts of the Events that got the channel and sent something."""
    segments = _by_channel(write for write in evidence.writes if write.segment)
    orders = [(request.event, request.sent) for request in evidence.requests if request.state in (1, 2)]
    orders += [(event, start) for event, (start, _) in evidence.scheduled.items()]
    measured = []
    for hold in evidence.log.holds:
        asked = max((at for event, at in orders if event == hold.event and at <= hold.since), default=None)
        times = [write.ended for write in segments.get(hold.channel, ()) if hold.since < write.ended <= hold.until]
        if asked is not None and times:
            first = min(times)
            calm = not any(disturbance.since < first and asked < disturbance.until for disturbance in evidence.disturbances)
            measured.append(Start(first - asked, calm))
    return measured


def takeovers(evidence: Evidence) -> dict[str, list[float]]:
    """Return the seconds from a fault to the first segment of the session that it led to, by the name of the fault.

    Of several faults that end sessions, the last one before the number was drawn counts.
    """
    ending = [disturbance for disturbance in evidence.disturbances if disturbance.name.endswith(ENDING)]
    drawn = {(draw.channel, draw.number): draw.at for draw in evidence.draws}
    measured: defaultdict[str, list[float]] = defaultdict(list)
    for channel, ours in _by_channel(write for write in evidence.writes if write.segment).items():
        firsts: dict[int, float] = {}
        for write in ours:
            firsts[write.session] = min(firsts.get(write.session, NEVER), write.ended)
        for before, after in pairwise(sorted(firsts)):
            at = drawn.get((channel, after), firsts[after])
            was_held = any(
                hold.channel == channel and hold.since < firsts[before] and at < hold.until for hold in evidence.log.holds
            )
            causes = [disturbance for disturbance in ending if firsts[before] < disturbance.since < at]
            if was_held and causes:
                cause = max(causes, key=lambda disturbance: disturbance.since)
                measured[cause.name].append(firsts[after] - cause.since)
    return dict(measured)


def last_writes(evidence: Evidence) -> list[float]:
    """Return the seconds from the end of each hold to the last byte of its sessions."""
    writes, measured = _by_channel(evidence.writes), []
    for hold, after in _with_next(evidence.log.holds):
        ends = [write.ended for write in writes.get(hold.channel, ()) if hold.since < write.ended < after]
        if ends and hold.until < NEVER:
            measured.append(max(max(ends) - hold.until, 0.0))
    return measured


def _with_next(holds: Iterable[Hold]) -> Iterator[tuple[Hold, float]]:
    """Yield each hold with the beginning of the next one of its channel."""
    by_channel: defaultdict[str, list[Hold]] = defaultdict(list)
    for hold in holds:
        by_channel[hold.channel].append(hold)
    for ours in by_channel.values():
        yield from zip(ours, (*(hold.since for hold in ours[1:]), NEVER), strict=True)


def _by_channel(writes: Iterable[Write]) -> dict[str, list[Write]]:
    writes_by_channel: defaultdict[str, list[Write]] = defaultdict(list)
    for write in writes:
        writes_by_channel[write.channel].append(write)
    return writes_by_channel
