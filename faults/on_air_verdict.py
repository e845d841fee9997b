"""What became of Events on the air: what publishing points received, beside what the log says and what clients were told.

Times are seconds since 1970, of the one clock of the machine; the product's own clocks, which may be set, take no part.
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
"""Faults of these end sessions."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Stated bounds, in seconds and bytes. `start`: from an order to the channel and from there to a segment, and without a segment
    after that; `together`: after the first byte of a later session, in which a write of an earlier one may begin; `late`: bytes of
    earlier ones after it, on both points; `stop`: after a stop, in which the last write may begin; `drawn`: between two clocks."""

    start: float = 30.0
    together: float = 0.25
    late: int = 128 * 1024
    stop: float = 10.0
    drawn: float = 1.0


class Kind(StrEnum):
    """What can be found wrong."""

    TOGETHER = "together"
    """A session began a write after a later one of its channel had sent, or two Events were on the air on one channel."""
    LATE = "late bytes"
    """More bytes of an earlier session than the bound, after a later one had begun."""
    MISSED = "missed"
    """An order to start without a channel, though it was free, or a channel without a segment."""
    SILENT = "silent"
    """A point without segments in the middle of it."""
    RESTARTED = "restarted"
    """A session that began, or wrote, after its Event had left the air."""
    CHILDREN = "children"
    """A process of an encoder that was left."""
    SCHEDULE = "schedule"
    """Started or stopped by the schedule not exactly once, or too early."""
    NUMBERS = "numbers"
    """A number that was not drawn for the channel, or drawn out of order; a write without one."""
    LOST = "lost"
    """An answered change that the log does not have."""


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A request that a client sent, and that was answered. `state` is what the Event was in then; None: deleted."""

    event: str
    channel: str
    state: int | None
    sent: float
    answered: float


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A fault that was made. `points` are those that took nothing meanwhile."""

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
class Found:
    """After the faults. `scheduled`: the start and the end of Events that nobody else started or stopped; `children`: processes of
    encoders that were left; `over`: when it ended."""

    log: AirLog
    writes: Sequence[Write]
    draws: Sequence[Draw]
    told: Sequence[AnsweredRequest]
    over: float
    scheduled: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    disturbances: Sequence[Disturbance] = ()
    children: Sequence[str] = ()


def judged(found: Found, limits: Limits) -> Verdict[Kind]:
    return Verdict.of(
        (
            *_sessions(found, limits),
            *_numbers(found, limits),
            *_orders(found, limits),
            *_segments(found, limits),
            *_stops(found, limits),
            *_schedule(found, limits),
            *_answers(found),
            *((Kind.CHILDREN, sentence) for sentence in found.children),
        )
    )


# --- sessions


@dataclass(frozen=True, slots=True)
class Overlap:
    """What arrived of a session after a later one of its channel had begun. `begun`: writes that began after the bound."""

    channel: str
    session: int
    seconds: float
    bytes: int
    begun: int


def overlaps(writes: Sequence[Write], *, bound: float) -> list[Overlap]:
    """Of all sessions that sent anything after a later one. A refused write was sent, but is not in `bytes`."""
    found = []
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
                found.append(Overlap(channel, session, max(at for at, *_ in pieces) - later, taken, begun))
            later = min(later, *(write.pieces[0][0] for write in group))
    return found


def _sessions(found: Found, limits: Limits) -> Iterator[tuple[Kind, str]]:
    for place, hold in enumerate(found.log.holds):
        for other in found.log.holds[:place]:
            if other.channel == hold.channel and other.overlaps(hold.since, hold.until):
                yield Kind.TOGETHER, f"{other.event} and {hold.event} were on the air on {hold.channel}"
    for one in overlaps(found.writes, bound=limits.together):
        named = f"session {one.session} of {one.channel}"
        if one.begun:
            yield Kind.TOGETHER, f"{named} began {one.begun} writes up to {one.seconds:.1f} s after a later one had sent"
        if one.bytes > limits.late:
            yield Kind.LATE, f"{named} sent {one.bytes} bytes after a later one"


def _numbers(found: Found, limits: Limits) -> Iterator[tuple[Kind, str]]:
    drawn = {(draw.channel, draw.number) for draw in found.draws}
    for channel, number in {(write.channel, write.session) for write in found.writes}:
        if number == UNNUMBERED:
            yield Kind.NUMBERS, f"a write to {channel} without a session"
        elif (channel, number) not in drawn:
            yield Kind.NUMBERS, f"session {number} of {channel} was never drawn"
    by_channel: defaultdict[str, list[Draw]] = defaultdict(list)
    for draw in found.draws:
        by_channel[draw.channel].append(draw)
    for draws in by_channel.values():
        for before, after in pairwise(draws):
            if after.number <= before.number:
                yield Kind.NUMBERS, f"{after.number} of {after.channel} was drawn after {before.number}"
    for draw in found.draws:
        since, until = draw.at - limits.drawn, draw.at + limits.drawn
        if not any(hold.channel == draw.channel and hold.overlaps(since, until) for hold in found.log.holds):
            yield Kind.RESTARTED, f"session {draw.number} of {draw.channel} was drawn while no Event was on the air"


# --- starts and segments


def _orders(found: Found, limits: Limits) -> Iterator[tuple[Kind, str]]:
    """An order is fulfilled by the Event's hold of the channel, and excused by another's."""
    for order in found.log.orders:
        until = _extended(found, order.at, limits.start)
        if min(order.until, found.over) < until:
            continue
        if not any(hold.channel == order.channel and hold.overlaps(order.at, until) for hold in found.log.holds):
            yield Kind.MISSED, f"the Event {order.event} was to start on {order.channel}, which was free, and did not"


def _segments(found: Found, limits: Limits) -> Iterator[tuple[Kind, str]]:
    segments = _by_channel(write for write in found.writes if write.segment)
    for hold in found.log.holds:
        if hold.failed:
            yield Kind.MISSED, f"the encoder of {hold.channel} was given up: {hold.failed}"
            continue
        until = min(hold.until, found.over)
        times = [(write.ended, write.point) for write in segments.get(hold.channel, ()) if hold.since < write.ended <= until]
        first = min((at for at, _ in times), default=until)
        if first > (latest := _extended(found, hold.since, limits.start)):
            yield Kind.MISSED, f"the Event {hold.event} on {hold.channel} had no segment for {latest - hold.since:.0f} s"
            continue
        for point in range(POINTS):
            ours = sorted(at for at, place in times if place == point)
            for before, after in pairwise((first, *ours, until)):
                if after > _extended(found, before, limits.start, point=point):
                    yield Kind.SILENT, f"point {point} of {hold.channel} had no segment for {after - before:.0f} s"


def _extended(found: Found, since: float, seconds: float, *, point: int | None = None) -> float:
    """The end of this time, of which that counts not in which the point took nothing; without a point neither took anything."""
    wanted = frozenset(range(POINTS) if point is None else (point,))
    return _later([one for one in found.disturbances if wanted <= one.points], since, seconds)


def _later(disturbances: Iterable[Disturbance], since: float, seconds: float) -> float:
    """The end of this time, without that of the disturbances."""
    ill = sorted((one.since, one.until) for one in disturbances)
    until = since + seconds
    for began, ended in ill:
        if began < until and ended > since:
            until += min(ended, NEVER) - max(began, since)
    return until


# --- stops


def _stops(found: Found, limits: Limits) -> Iterator[tuple[Kind, str]]:
    """Writes that began while no Event was on the air, for longer than the bound. A stop is heard of from the database, so the
    time counts not in which that was away."""
    away = [one for one in found.disturbances if one.name.endswith(_DATABASE)]
    for channel, writes in _by_channel(found.writes).items():
        holds = [hold for hold in found.log.holds if hold.channel == channel]
        late: defaultdict[float, list[float]] = defaultdict(list)
        for write in writes:
            if not any(hold.since <= write.began < _later(away, hold.until, limits.stop) for hold in holds):
                late[max((hold.until for hold in holds if hold.until < write.began), default=0.0)].append(write.began)
        for stopped, times in late.items():
            names = dict.fromkeys(one.name for one in found.disturbances if one.since < max(times) and one.until > stopped - 10)
            sent = f"{channel} was sent to {len(times)} times up to {max(times) - stopped:.1f} s after the stop at {stopped:.1f}"
            yield Kind.RESTARTED, f"{sent}, about {', '.join(names) or 'nothing'}"


def _schedule(found: Found, limits: Limits) -> Iterator[tuple[Kind, str]]:
    for event, times in found.scheduled.items():
        for verb, planned in zip(("start", "stop"), times, strict=True):
            done = found.log.scheduled.get((event, verb == "start"), [])
            if len(done) != 1:
                yield Kind.SCHEDULE, f"the schedule was to {verb} the Event {event} once, and did it {len(done)} times"
            elif not planned - _EARLY <= done[0] <= planned + limits.start:
                yield Kind.SCHEDULE, f"the schedule was to {verb} the Event {event}, and did it {done[0] - planned:.1f} s late"


def _answers(found: Found) -> Iterator[tuple[Kind, str]]:
    last: dict[str, AnsweredRequest] = {}
    for told in found.told:
        last[told.event] = told
    for event, told in last.items():
        state = found.log.states.get(event)
        if state is None or (event in found.log.deleted) != (told.state is None) or told.state not in (None, state):
            yield Kind.LOST, f"the Event {event} was {told.state}, and the log says {state}"


# --- figures


@dataclass(frozen=True, slots=True)
class Start:
    """From an order to the first segment. `calm`: without a fault meanwhile."""

    seconds: float
    calm: bool


def starts(found: Found) -> list[Start]:
    """Of those that got the channel and sent something."""
    segments = _by_channel(write for write in found.writes if write.segment)
    orders = [(told.event, told.sent) for told in found.told if told.state in (1, 2)]
    orders += [(event, start) for event, (start, _) in found.scheduled.items()]
    measured = []
    for hold in found.log.holds:
        asked = max((at for event, at in orders if event == hold.event and at <= hold.since), default=None)
        times = [write.ended for write in segments.get(hold.channel, ()) if hold.since < write.ended <= hold.until]
        if asked is not None and times:
            first = min(times)
            calm = not any(one.since < first and asked < one.until for one in found.disturbances)
            measured.append(Start(first - asked, calm))
    return measured


def takeovers(found: Found) -> dict[str, list[float]]:
    """Seconds from a fault to the first segment of the session that it led to, by the name of the fault. Of several that end
    sessions it is the last before the number was drawn."""
    ending = [one for one in found.disturbances if one.name.endswith(ENDING)]
    drawn = {(draw.channel, draw.number): draw.at for draw in found.draws}
    measured: defaultdict[str, list[float]] = defaultdict(list)
    for channel, ours in _by_channel(write for write in found.writes if write.segment).items():
        firsts: dict[int, float] = {}
        for write in ours:
            firsts[write.session] = min(firsts.get(write.session, NEVER), write.ended)
        for before, after in pairwise(sorted(firsts)):
            at = drawn.get((channel, after), firsts[after])
            held = any(hold.channel == channel and hold.since < firsts[before] and at < hold.until for hold in found.log.holds)
            causes = [one for one in ending if firsts[before] < one.since < at]
            if held and causes:
                cause = max(causes, key=lambda one: one.since)
                measured[cause.name].append(firsts[after] - cause.since)
    return dict(measured)


def last_writes(found: Found) -> list[float]:
    """Seconds from the end of each hold to the last byte of its sessions."""
    writes, measured = _by_channel(found.writes), []
    for hold, after in _with_next(found.log.holds):
        ends = [write.ended for write in writes.get(hold.channel, ()) if hold.since < write.ended < after]
        if ends and hold.until < NEVER:
            measured.append(max(max(ends) - hold.until, 0.0))
    return measured


def _with_next(holds: Iterable[Hold]) -> Iterator[tuple[Hold, float]]:
    """Each with the beginning of the next one of its channel."""
    by_channel: defaultdict[str, list[Hold]] = defaultdict(list)
    for hold in holds:
        by_channel[hold.channel].append(hold)
    for ours in by_channel.values():
        yield from zip(ours, (*(hold.since for hold in ours[1:]), NEVER), strict=True)


def _by_channel(writes: Iterable[Write]) -> dict[str, list[Write]]:
    found: defaultdict[str, list[Write]] = defaultdict(list)
    for write in writes:
        found[write.channel].append(write)
    return found
