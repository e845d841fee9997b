"""The workers of one process: the order in which they start and stop, also after a failed start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from api.wiring.catalogue import WORKER_ROLES
from domain.destination.targets import Target
from domain.record.kinds.quiet import Quiet, QuietDetails
from domain.record.ports import RecordRow
from projections.record.queries import RecordQueries
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets.registry import TargetRegistry
from workers.kernel.metrics import WorkerMetrics
from workers.kernel.quiet import REFUSAL, QuietMode
from workers.kernel.worker import Worker
from workers.ports.outbound import OutboundRefused
from workers.ports.targets import TargetFailed
from workers.wiring import Workers


class Recorded:
    """A worker that records its starts and stops."""

    def __init__(self, name: str, notes: list[str], *, fails: bool = False, stays: bool = False, turns: int = 0) -> None:
        self._name = name
        self._notes = notes
        self._fails = fails
        self._stays = stays
        self._turns = turns

    async def start(self) -> None:
        if self._fails:
            raise RuntimeError(self._name)
        self._notes.append(f"+{self._name}")

    async def stop(self) -> None:
        if self._stays:
            raise RuntimeError(self._name)
        for _ in range(self._turns):
            await asyncio.sleep(0)
        self._notes.append(f"-{self._name}")


class Orders:
    """The order to be quiet, in place of the view that holds it."""

    def __init__(self) -> None:
        self.quiet = False

    async def find(self, kind: type[Quiet], key: object) -> RecordRow | None:
        assert (kind, key) == (Quiet, Quiet.ONLY_KEY)
        now = datetime(2031, 1, 2, tzinfo=UTC)
        return RecordRow(Quiet.KIND, str(key), 1, QuietDetails(on=self.quiet), now, now)


Groups = Callable[[bool], Sequence[Sequence[Worker]]]


def workers_of(
    make: Groups, notes: list[str], *names: str, kind: type[Workers] = Workers, orders: Any = None, quiet: QuietMode | None = None
) -> Workers:
    return kind(
        names,
        lambda quiet: make(quiet),
        always=[Recorded("log watcher", notes)],
        quiet=quiet or QuietMode(),
        records=cast(RecordQueries, orders or Orders()),
        metrics=WorkerMetrics(),
    )


def workers(notes: list[str], *, fails: bool = False, stays: bool = False) -> Workers:
    def make(quiet: bool) -> Sequence[Sequence[Worker]]:
        roles = [Recorded("first", notes, stays=stays), Recorded("second", notes, fails=fails, turns=10)]
        return [[Recorded("pool", notes)], [Recorded("hub", notes)], roles]

    return workers_of(make, notes, "first", "second")


async def test_what_roles_share_starts_once_before_them_and_stops_after_them() -> None:
    notes: list[str] = []
    made = workers(notes)
    assert made.names == ("first", "second")
    await made.start()
    assert notes == ["+log watcher", "+pool", "+hub", "+first", "+second"]
    notes.clear()
    await made.stop()
    assert notes == ["-first", "-second", "-hub", "-pool", "-log watcher"]


async def test_after_a_start_that_failed_everything_that_was_begun_is_stopped() -> None:
    notes: list[str] = []
    made = workers(notes, fails=True)
    with pytest.raises(RuntimeError, match="second"):
        await made.start()
    notes.clear()
    await made.stop()
    assert notes == ["-first", "-second", "-hub", "-pool", "-log watcher"]


async def test_a_worker_that_cannot_be_stopped_does_not_keep_the_others_from_it() -> None:
    notes: list[str] = []
    made = workers(notes, stays=True)
    await made.start()
    notes.clear()
    with pytest.raises(RuntimeError, match="first"):
        await made.stop()
    assert notes == ["-second", "-hub", "-pool", "-log watcher"]


class Switched(Workers):
    """Workers that follow an order when the test says so."""

    async def _turn(self) -> None:
        await asyncio.Event().wait()

    async def follow(self) -> None:
        await self._follow()


async def test_while_it_is_quiet_only_inner_roles_run_and_they_read_no_kafka() -> None:
    notes: list[str] = []

    def make(quiet: bool) -> Sequence[Sequence[Worker]]:
        if quiet:
            return [[Recorded("inner on the log", notes)]]
        return [[Recorded(f"{name} on Kafka", notes) for name in ("inner", "outer")]]

    orders, quiet = Orders(), QuietMode()
    made = cast(Switched, workers_of(make, notes, "inner", "outer", kind=Switched, orders=orders, quiet=quiet))
    await made.start()
    assert notes == ["+log watcher", "+inner on Kafka", "+outer on Kafka"]
    for order, changes in (
        (True, ["-inner on Kafka", "-outer on Kafka", "+inner on the log"]),
        (True, []),
        (False, ["-inner on the log", "+inner on Kafka", "+outer on Kafka"]),
    ):
        notes.clear()
        orders.quiet = order
        await made.follow()
        assert (notes, quiet.on) == (changes, order)
    await made.stop()


async def test_a_process_that_starts_while_it_is_quiet_starts_no_other_role() -> None:
    notes: list[str] = []
    orders = Orders()
    orders.quiet = True
    made = workers_of(lambda quiet: [] if quiet else [[Recorded("outer", notes)]], notes, "outer", kind=Switched, orders=orders)
    await made.start()
    await made.stop()
    assert notes == ["+log watcher", "-log watcher"]


def test_only_roles_that_reach_nothing_but_the_database_are_inner() -> None:
    """Check every call of a role before adding it here."""
    assert {name for name, role in WORKER_ROLES.items() if role.inside} == {"lists", "sealer"}


async def test_while_it_is_quiet_a_process_reaches_no_address_and_no_target() -> None:
    quiet = QuietMode()
    quiet.on = True
    client = GuardedClient(permit=quiet.permit)
    url = "http://receiver.example/"
    for call in (
        client.request("GET", url),
        client.connect("receiver.example", port=1935, secure=False),
        client.socket("receiver.example", port=22),
        client.download(url, Path("film.mp4")),
        anext(client.stream(url)),
    ):
        with pytest.raises(OutboundRefused, match="quiet"):
            await call
    targets = TargetRegistry(GuardedClient, quiet=quiet)
    for target in Target:
        with pytest.raises(TargetFailed, match=REFUSAL):
            await targets(target, {"path": "published"}).check()
