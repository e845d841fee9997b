"""The freeze test: a writer process that stops dead at any moment holds nobody up, because nothing waits for it to go on."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.projections.log.conftest import Figures
from tests.projections.log.helpers import logged, whole
from tests.projections.log.writers import Acknowledged, Writers, writers
from tests.support.waiting import until

FREEZES = 25
EACH = 20  # appends that every other process must get through while one is frozen
STALL = 5.0


@dataclass
class Freeze:
    slot: int
    begin: float
    end: float
    stalled: bool


def freeze(running: Writers, slot: int) -> Freeze:
    """Stop one process until each of the others has written, or visibly cannot."""
    others = [other for other in range(running.count) if other != slot]
    begin = time.monotonic()
    os.kill(running.pid(slot), signal.SIGSTOP)
    try:
        goal = {other: running.done(other) + EACH for other in others}
        until(lambda: all(running.done(other) >= goal[other] for other in others), seconds=STALL)
        stalled = False
    except AssertionError:
        stalled = True
    finally:
        os.kill(running.pid(slot), signal.SIGCONT)
    return Freeze(slot, begin, time.monotonic(), stalled)


def freezes(running: Writers, dice: random.Random, *, stop_at_a_stall: bool = False) -> list[Freeze]:
    until(lambda: all(running.done(slot) for slot in range(running.count)))
    done: list[Freeze] = []
    while len(done) < FREEZES and not (stop_at_a_stall and done and done[-1].stalled):
        slot = dice.randrange(running.count)
        reached = running.done(slot) + dice.randrange(1, 40)  # it must have thawed, too
        until(lambda slot=slot, reached=reached: running.done(slot) >= reached)  # type: ignore[misc]
        done.append(freeze(running, slot))
    return done


def slowest(reports: list[list[Acknowledged]], done: list[Freeze]) -> float:
    """The slowest append of anybody else that was under way while a process was frozen."""
    return max(
        append.answered - append.asked
        for during in done
        for slot, each in enumerate(reports)
        for append in each
        if slot != during.slot and append.asked < during.end and append.answered > during.begin
        if not any(own.slot == slot and append.asked < own.end and append.answered > own.begin for own in done)
    )


@pytest.mark.long
def test_a_frozen_writer_does_not_block_the_others(database_url: str, tmp_path: Path, figures: Figures) -> None:
    with writers(database_url, tmp_path, count=4) as running:
        done = freezes(running, random.Random(11))
        reports = running.wind_up()
    figures("freeze test: slowest append beside a frozen writer, in seconds", round(slowest(reports, done), 3))
    assert len(done) == FREEZES
    assert not [each for each in done if each.stalled]
    assert slowest(reports, done) < STALL
    acknowledged = sum(append.events for each in reports for append in each)
    assert {append.position for each in reports for append in each} <= {position for position, _, _ in logged(database_url)}
    assert whole(database_url) == acknowledged


@pytest.mark.long
def test_the_freeze_test_notices_a_head_row_that_is_held_over_round_trips(database_url: str, tmp_path: Path) -> None:
    with writers(database_url, tmp_path, count=4, way="transaction") as running:
        done = freezes(running, random.Random(11), stop_at_a_stall=True)
        running.wind_up()
    assert done[-1].stalled
