"""Workers of sessions as processes, with ffmpeg, that are killed and frozen: media at the publishing point name their sender."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.values import EventState, Trigger
from domain.record.kinds.channel import Channel
from tests.contract.encoder.ffmpeg_stage import SMALL, children
from tests.support.engine import once
from tests.support.feeding import configured, do, event, record
from tests.support.product import Product, Products
from tests.support.receiver import Receiver, receiving
from tests.support.sessions import go_live, until
from workers.session.worker import LEASE

MAIN = UUID(int=101)
LIVE, STOPPED = EventState.LIVE_UNPUBLISHED, EventState.STOPPED
BUSY = 30.0
"""Seconds by which a busy machine may take longer."""


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


async def two_workers(inner: Core, started: Products, database_url: str, tmp_path: Path) -> list[Product]:
    key = tmp_path / "master.key"
    key.write_bytes(bytes(32))
    key.chmod(0o600)
    made = [
        started.start(
            tmp_path / name,
            "workers sessions",
            database_url=database_url,
            master_key_file=str(key),
            media_root=str(tmp_path / "media"),
            outbound_allow="127.0.0.0/8",
        )
        for name in ("one", "two")
    ]
    members = "SELECT FROM consumer_members WHERE consumer = 'sessions'"

    async def both() -> bool:
        return len(await inner.database.rows(members)) == 2

    await once(both, seconds=120)
    return made


async def on_air(inner: Core, receiver: Receiver) -> UUID:
    point = {"primaryPublishingPoint": {"publishingPointUrl": receiver.point("a")}}
    server = {"streamingServerSpecific": point}
    encoder = {"name": "enc-1", "type": "ffmpeg", "encoderSpecific": SMALL, "streamingServer": server}
    await record(inner, Channel, MAIN.int, **configured("main", json.dumps({"encoders": [encoder]})))
    key = await event(inner, 1, channel_id=MAIN)
    await go_live(inner, key)
    await until(lambda: receiver.media("a"), seconds=120)
    return key


def owner(workers: list[Product]) -> Product:
    """Return the worker whose child is ffmpeg."""
    [encoding_worker] = [worker for worker in workers if children("ffmpeg", of=worker.process.pid)]
    return encoding_worker


def numbers(receiver: Receiver) -> list[int]:
    return [medium.session for medium in receiver.media("a")]


async def taken_over(receiver: Receiver) -> float:
    """Return the seconds until media of a later session arrive."""
    before = max(numbers(receiver))
    return await until(lambda: max(numbers(receiver)) > before, seconds=LEASE * 4 / 3 + 10 + BUSY)


async def off_air(inner: Core, key: UUID, workers: list[Product]) -> None:
    await do(inner, MediaEvent.change_state.on(key, STOPPED, trigger=Trigger.OPERATOR))
    await until(lambda: not any(children("ffmpeg", of=worker.process.pid) for worker in workers), seconds=60)


@pytest.mark.long
async def test_a_frozen_worker_is_replaced_and_sends_nothing_when_it_goes_on(
    inner: Core, started: Products, database_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    workers = await two_workers(inner, started, database_url, tmp_path)
    key = await on_air(inner, receiver)
    frozen = owner(workers)
    frozen.signal(signal.SIGSTOP)
    await taken_over(receiver)
    before = len(receiver.taken)
    frozen.signal(signal.SIGCONT)
    await until(lambda: not children("ffmpeg", of=frozen.process.pid), seconds=60)
    await until(lambda: len(receiver.taken) > before + 10, seconds=60)
    await off_air(inner, key, workers)
    assert len(set(numbers(receiver))) == 2
    assert numbers(receiver) == sorted(numbers(receiver)), "nothing of the first session arrived after the second had begun"


@pytest.mark.long
async def test_a_killed_worker_leaves_no_encoder_and_is_replaced(
    inner: Core, started: Products, database_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    workers = await two_workers(inner, started, database_url, tmp_path)
    key = await on_air(inner, receiver)
    killed = owner(workers)
    [child] = children("ffmpeg", of=killed.process.pid)
    killed.kill()
    await until(lambda: not Path(f"/proc/{child}").exists(), seconds=30)
    await taken_over(receiver)
    [remaining] = [worker for worker in workers if worker is not killed]
    await off_air(inner, key, [remaining])
    assert numbers(receiver) == sorted(numbers(receiver))


async def test_a_worker_that_is_asked_to_stop_hands_over_at_once(
    inner: Core, started: Products, database_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    workers = await two_workers(inner, started, database_url, tmp_path)
    key = await on_air(inner, receiver)
    stopped = owner(workers)
    stopped.signal(signal.SIGTERM)
    await taken_over(receiver)
    assert await asyncio.to_thread(stopped.ended) == 0
    [remaining] = [worker for worker in workers if worker is not stopped]
    await off_air(inner, key, [remaining])
    assert numbers(receiver) == sorted(numbers(receiver))
