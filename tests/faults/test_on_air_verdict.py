"""The verdict of the fault matrix of Events on the air, on logs and writes that are made up: each fault is found, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from domain.event import events
from faults.on_air_log import LIVE, AirLog
from faults.on_air_verdict import (
    AnsweredRequest,
    Disturbance,
    Draw,
    Evidence,
    Kind,
    Limits,
    judge,
    last_writes,
    overlaps,
    starts,
    takeovers,
)
from faults.publishing_points import UNNUMBERED, Write

LIMITS = Limits(start=10.0, together=1.0, late=1000, stop=5.0, drawn=1.0)
STATE = "event.state_changed"


@dataclass
class World:
    """A channel, and three Events on it: `put`, with a second session after a fault; `planned`, by the schedule; `brief`, stopped
    at once. All agrees, until a test changes something."""

    log: AirLog = field(default_factory=lambda: AirLog(dict.fromkeys(("put", "planned", "brief", "other"), "c0"), {"id-0": "c0"}))
    writes: list[Write] = field(default_factory=list)
    evidence: Evidence = field(init=False)

    def __post_init__(self) -> None:
        for event in ("put", "planned", "brief"):
            self.say(event, "event.registered", at=90)
        self.on_air("put", 100, 200)
        self.on_air("planned", 300, 330, trigger="schedule")
        self.say("brief", STATE, at=400, state=1, trigger="operator")
        self.say("brief", "event.force_stopped", at=400.5)
        self.say("brief", "event.deleted", at=401)
        self.send(7, 102, 150)
        self.send(8, 155, 201)
        self.send(9, 302, 331)
        draws = [Draw("c0", number, at) for number, at in ((7, 101.0), (8, 154.0), (9, 301.0))]
        requests = [
            AnsweredRequest("put", "c0", 1, 99.9, 100.1),
            AnsweredRequest("put", "c0", 4, 199.9, 200.1),
            AnsweredRequest("brief", "c0", None, 400.9, 401.1),
        ]
        disturbances = (Disturbance("kill sessions", 150.5, 150.5), Disturbance("receiver down", 120, 125, frozenset({0})))
        self.evidence = Evidence(
            self.log, self.writes, draws, requests, over=500, scheduled={"planned": (300, 330)}, disturbances=disturbances
        )

    def say(self, event: str, topic: str, *, at: float, **content: Any) -> World:
        self.log.take(event, topic, content=content, at=at)
        return self

    def on_air(self, event: str, since: float, until: float, *, trigger: str = "operator") -> None:
        self.say(event, STATE, at=since, state=1, trigger=trigger)
        self.say(event, "event.channel_taken", at=since + 0.1, channel_id="id-0", order=1)
        self.say(event, STATE, at=until, state=4, trigger=trigger)
        self.say(event, "event.channel_released", at=until, channel_id="id-0")

    def order(self, event: str, at: float) -> World:
        return self.say(event, STATE, at=at, state=2, trigger="operator")

    def hold(self, event: str, since: float, until: float, *, failed: str = "") -> World:
        self.say(event, "event.channel_taken", at=since, channel_id="id-0", order=1)
        if failed:
            self.say(event, "event.encoder_failed", at=until, session=None, reason=failed)
        return self.say(event, "event.channel_released", at=until, channel_id="id-0")

    def send(self, session: int, since: float, until: float, **fields: Any) -> World:
        """A segment a second at both points."""
        for at in range(int(since), int(until)):
            for point in (0, 1):
                self.write(session, at, point=point, **fields)
        return self

    def write(self, session: int, at: float, *, point: int = 0, size: int = 100, status: int = 201) -> None:
        self.writes.append(Write("c0", point, session, f"v0-{session}-{at:.0f}.m4s", at - 0.01, [(at, size)], status))

    def drop(self, since: float, until: float, *, point: int | None = None) -> World:
        self.writes[:] = [write for write in self.writes if not since <= write.ended < until or point not in (None, write.point)]
        return self

    def now(self, **changed: Any) -> None:
        self.evidence = replace(self.evidence, **changed)

    def draw(self, number: int, at: float) -> None:
        self.now(draws=[*self.evidence.draws, Draw("c0", number, at)])

    def wrong(self) -> dict[Kind, int]:
        return dict(judge(self.evidence, LIMITS).counts)


def test_a_correct_broadcast_has_no_fault() -> None:
    assert World().wrong() == {}


def test_a_receiver_that_accepts_no_bytes_excuses_its_own_point() -> None:
    world = World()
    world.drop(116, 129, point=0)
    assert world.wrong() == {}
    world.drop(116, 129, point=1)
    assert world.wrong() == {Kind.SILENT: 1}


def test_only_the_database_excuses_a_late_stop_and_no_longer_than_it_is_away() -> None:
    """The stop is at 330 and the bound 5 s."""
    world = World()
    world.send(9, 336, 338)
    for name, until, wrong in (("kill PostgreSQL", 333, 0), ("kill PostgreSQL", 331, 1), ("Kafka outage", 333, 1)):
        world.now(disturbances=(Disturbance(name, 329, until),))
        assert world.wrong() == ({Kind.RESTARTED: 1} if wrong else {}), (name, until)
    [message] = judge(world.evidence, LIMITS).messages
    assert message == "restarted: c0 was sent to 4 times up to 7.0 s after the stop at 330.0, about Kafka outage"


@pytest.mark.parametrize(("stopped", "wrong"), [(150, {}), (205, {}), (250, {Kind.MISSED: 1})])
def test_an_event_that_waits_takes_the_channel_when_it_is_free(stopped: float, wrong: dict[Kind, int]) -> None:
    world = World()
    world.order("other", 110)
    world.say("other", STATE, at=stopped, state=4, trigger="operator")
    assert world.wrong() == wrong


def test_bytes_refused_by_a_point_are_not_late() -> None:
    world = World()
    world.write(7, 155.5, size=5000, point=1, status=409)
    assert world.wrong() == {}
    assert [(overlap.session, overlap.seconds, overlap.bytes, overlap.begun) for overlap in overlaps(world.writes, bound=1)] == [
        (7, 0.5, 0, 0)
    ]


def test_states_that_are_data_are_no_orders() -> None:
    world = World()
    world.say("brief", STATE, at=410, state=LIVE[0], trigger="metadata")
    world.now(requests=[request for request in world.evidence.requests if request.event != "brief"])
    assert world.wrong() == {}


PLANTED: dict[str, tuple[Kind, Callable[[World], object]]] = {
    "an old session that goes on": (Kind.TOGETHER, lambda world: world.send(7, 160, 164)),
    "an old session at the other point only": (Kind.TOGETHER, lambda world: world.write(7, 170, point=1)),
    "an old session that a point refuses": (Kind.TOGETHER, lambda world: world.write(7, 170, point=1, status=409)),
    "many bytes of an old session": (Kind.LATE, lambda world: world.write(7, 155.5, size=5000)),
    "two Events on one channel": (Kind.TOGETHER, lambda world: world.hold("brief", 110, 111)),
    "no segment at the start": (Kind.MISSED, lambda world: world.drop(302, 332)),
    "segments that are not taken": (
        Kind.MISSED,
        lambda world: world.drop(302, 332).send(9, 302, 331, status=500),
    ),
    "a late start": (Kind.MISSED, lambda world: world.drop(102, 115)),
    "no restart after a fault": (Kind.SILENT, lambda world: world.drop(155, 170)),
    "one point that stays silent": (Kind.SILENT, lambda world: world.drop(155, 202, point=1)),
    "an order without a channel": (Kind.MISSED, lambda world: world.order("other", 450)),
    "an encoder that is given up": (Kind.MISSED, lambda world: world.hold("other", 450, 451, failed="why")),
    "writes after a stop": (Kind.RESTARTED, lambda world: world.send(9, 336, 340)),
    "a number that is drawn after a stop": (Kind.RESTARTED, lambda world: world.draw(10, 340)),
    "a number that is drawn without an order": (Kind.RESTARTED, lambda world: world.draw(10, 450)),
    "a child that is left": (Kind.CHILDREN, lambda world: world.now(children=["ffmpeg 7"])),
    "a second start by the schedule": (
        Kind.SCHEDULE,
        lambda world: world.say("planned", STATE, at=331, state=4, trigger="schedule"),
    ),
    "a start that the schedule forgot": (
        Kind.SCHEDULE,
        lambda world: world.now(scheduled={"planned": (300, 330), "put": (300, 330)}),
    ),
    "a start before its time": (Kind.SCHEDULE, lambda world: world.now(scheduled={"planned": (301, 330)})),
    "a stop that is much too late": (Kind.SCHEDULE, lambda world: world.now(scheduled={"planned": (300, 319)})),
    "a number that nobody drew": (Kind.NUMBERS, lambda world: world.write(12, 330.5)),
    "a write without a number": (Kind.NUMBERS, lambda world: world.write(UNNUMBERED, 310)),
    "a number that is drawn twice": (Kind.NUMBERS, lambda world: world.draw(9, 310)),
    "a stop that the log does not have": (
        Kind.LOST,
        lambda world: world.now(requests=[*world.evidence.requests, AnsweredRequest("planned", "c0", 1, 340, 340.1)]),
    ),
    "a deletion that the log does not have": (
        Kind.LOST,
        lambda world: world.now(requests=[*world.evidence.requests, AnsweredRequest("put", "c0", None, 340, 340.1)]),
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_fault_is_found(fault: str) -> None:
    kind, plant = PLANTED[fault]
    world = World()
    plant(world)
    assert set(world.wrong()) == {kind}


def test_every_kind_of_fault_was_planted() -> None:
    assert {kind for kind, _ in PLANTED.values()} == set(Kind)


def test_seconds_are_measured_from_the_order_the_fault_and_the_stop() -> None:
    world = World()
    assert [(round(start.seconds, 1), start.calm) for start in starts(world.evidence)] == [(2.1, True), (2.0, True)]
    assert {name: [round(start, 1) for start in times] for name, times in takeovers(world.evidence).items()} == {
        "kill sessions": [4.5]
    }
    assert last_writes(world.evidence) == [0.0, 0.0]
    world.write(9, 331.5)
    assert last_writes(world.evidence) == [0.0, 1.5]


def test_a_start_under_a_fault_is_not_calm() -> None:
    world = World()
    world.now(disturbances=[Disturbance("kill api", 100.5, 100.5)])
    assert [start.calm for start in starts(world.evidence)] == [False, True]


def test_the_fold_knows_the_topics() -> None:
    topics = {event.TOPIC for event in events.EVENTS}
    assert {STATE, "event.registered", "event.force_stopped", "event.deleted", "event.channel_taken"} <= topics
    assert {"event.channel_released", "event.encoder_started", "event.encoder_failed"} <= topics
