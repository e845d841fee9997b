"""The verdict of the fault matrix of infrastructure, on a log and a journal that are made up: each fault is found, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from domain.provision import events
from faults.provisioning_verdict import DISK, Disturbance, Evidence, Info, Kind, Limits, Step, convergence, judge

LIMITS = Limits(halt=5.0, converge=30.0)
NAMES = ("encoder-1", "origin-1")


@dataclass
class World:
    """Two Events with one key: `one` is up from 100 to 200, `two` from 150 on. All agrees, until a test changes something."""

    infos: dict[str, Info] = field(default_factory=dict)
    journal: list[Step] = field(default_factory=list)
    evidence: Evidence = field(init=False)

    def __post_init__(self) -> None:
        for event in ("one", "two"):
            self.say(event, "opened", at=90, event_id=event, infrastructure_key="k")
        self.request("one", 1, at=100).step("make", "made", at=101).say("one", "provisioned", at=103, run=1, resources=UP)
        self.request("two", 1, at=150).say("two", "provisioned", at=152, run=1, resources=UP)
        self.say("one", "termination_requested", at=200, run=2).say("one", "terminated", at=202, run=2)
        files = {"k": frozenset(NAMES)}
        self.evidence = Evidence(
            list(self.infos.values()), self.journal, frozenset(NAMES), files, files, {"one": False, "two": True}, over=500
        )

    def say(self, event: str, topic: str, *, at: float, **content: Any) -> World:
        self.infos.setdefault(event, Info()).take(topic, content, at=at)
        return self

    def request(self, event: str, run: int, *, at: float) -> World:
        return self.say(event, "requested", at=at, run=run, plan={"infrastructure_key": "k"})

    def step(self, *what: str, at: float, name: str = "") -> World:
        for number, verb in enumerate(what):
            for each in [name] if name else NAMES:
                self.journal.append(Step(at + number, verb, "k", each))
        return self

    def now(self, **changed: Any) -> World:
        self.evidence = replace(self.evidence, **changed)
        return self

    def gone(self) -> World:
        """The last Event ends too."""
        self.say("two", "termination_requested", at=300, run=2).step("drop", "dropped", at=301)
        self.say("two", "terminated", at=304, run=2)
        return self.now(there={}, states={}, wishes={"one": False, "two": False})

    def wrong(self) -> dict[Kind, int]:
        return dict(judge(self.evidence, LIMITS).counts)


UP = [{"name": name} for name in NAMES]


def test_a_correct_provisioning_has_no_fault() -> None:
    assert World().wrong() == {}
    assert World().gone().wrong() == {}


def test_a_destruction_that_had_begun_is_halted_and_made_again() -> None:
    world = World().gone()
    world.request("one", 3, at=301.5).step("make", "made", at=306).say("one", "provisioned", at=308, run=3, resources=UP)
    files = {"k": frozenset(NAMES)}
    assert world.now(there=files, states=files, wishes={"one": True, "two": False}).wrong() == {}


def test_a_fault_extends_the_bounds_and_a_full_disk_excuses_a_failure() -> None:
    world = World().request("one", 3, at=300).say("one", "failed", at=350, run=3, reason="", left=True)
    assert set(world.now(wishes={"one": True, "two": True}).wrong()) == {Kind.FAILED, Kind.SLOW}
    assert world.now(disturbances=[Disturbance(DISK, 310, 335)]).wrong() == {}
    assert world.now(disturbances=[Disturbance("kill PostgreSQL", 310, 335)]).wrong() == {Kind.FAILED: 1}


def test_a_reset_and_an_order_without_a_successor_are_ends() -> None:
    world = World().gone()
    world.say("two", "reset", at=310, run=3, release=False).say("two", "requested", at=311, run=4, plan={"infrastructure_key": "k"})
    world.say("two", "failed", at=312, run=4, left=False, resources=()).say("two", "terminated", at=313, run=5)
    assert set(world.wrong()) == {Kind.FAILED}


PLANTED: dict[str, tuple[Kind, Callable[[World], object]]] = {
    "two programs at once": (Kind.TOGETHER, lambda world: world.now(together=["1 and 2"])),
    "a file that nobody wants": (
        Kind.ORPHANS,
        lambda world: world.gone().now(there={"k": frozenset({"origin-1"})}, states={"k": frozenset({"origin-1"})}),
    ),
    "a file that no state has": (Kind.ORPHANS, lambda world: world.now(states={"k": frozenset({"origin-1"})})),
    "an object of a state that is nowhere": (Kind.ORPHANS, lambda world: world.gone().now(states={"k": frozenset({"x"})})),
    "a file of a key that no Event has": (
        Kind.ORPHANS,
        lambda world: world.now(there={**world.evidence.there, "l": frozenset({"x"})}),
    ),
    "a resource that was made twice": (Kind.ORPHANS, lambda world: world.step("make", "made", at=400, name="origin-1")),
    "a wanted file that is not there": (Kind.MISSING, lambda world: world.now(there={"k": frozenset({"origin-1"})})),
    "a destruction of what is wanted": (Kind.DESTROYED, lambda world: world.step("drop", at=160, name="origin-1")),
    "a destruction by the first that ends": (Kind.DESTROYED, lambda world: world.step("drop", at=201, name="origin-1")),
    "an end that is told again": (Kind.TWICE, lambda world: world.say("one", "terminated", at=203, run=2)),
    "an end of an earlier run": (Kind.LATE, lambda world: world.say("two", "provisioned", at=160, run=0, resources=UP)),
    "an end of a run that a reset has ended": (
        Kind.LATE,
        lambda world: world.say("one", "reset", at=300, run=3, release=False).say("one", "release_ended", at=301, run=3),
    ),
    "up, and it is not": (Kind.FALSE, lambda world: world.journal.clear()),
    "gone, and it is there": (
        Kind.FALSE,
        lambda world: world.gone().now(journal=[line for line in world.journal if line.what != "dropped"]),
    ),
    "a failure": (
        Kind.FAILED,
        lambda world: (
            world.gone()
            .say("two", "reset", at=310, run=3, release=False)
            .request("two", 4, at=320)
            .say("two", "failed", at=321, run=4, left=False)
            .now(wishes={})
        ),
    ),
    "an end that is much too late": (
        Kind.SLOW,
        lambda world: world.request("one", 3, at=300).say("one", "provisioned", at=331, run=3, resources=UP).now(wishes={}),
    ),
    "an order without an end": (Kind.SLOW, lambda world: world.request("one", 3, at=300).now(wishes={})),
    "a request that the log does not have": (Kind.LOST, lambda world: world.now(wishes={"one": True})),
    "an Event that the log does not have": (Kind.LOST, lambda world: world.now(wishes={"three": False})),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_fault_is_found(fault: str) -> None:
    kind, plant = PLANTED[fault]
    world = World()
    plant(world)
    assert kind in world.wrong()
    assert world.wrong().keys() - {kind} <= {Kind.MISSING, Kind.FALSE}, "what follows from it"


def test_every_kind_of_fault_was_planted() -> None:
    assert {kind for kind, _ in PLANTED.values()} == set(Kind)


def test_seconds_are_measured_from_the_order() -> None:
    world = World()
    assert convergence(world.evidence) == ([3, 2, 2], [])
    world.now(disturbances=[Disturbance("kill at claim", 151, 153)])
    assert convergence(world.evidence) == ([3, 2], [2])


def test_the_fold_knows_the_topics() -> None:
    topics = {event.TOPIC.removeprefix("provision.") for event in events.EVENTS}
    assert topics == {
        *("opened", "requested", "provisioned", "failed", "termination_requested", "partly_terminated", "terminated"),
        *("termination_failed", "reset", "release_ended"),
    }
