"""The judge of live publications finds each kind of fault, and none where there is none."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from faults.pushes_verdict import AFTER_STOP, SILENT, Evidence, Kind, Stop, Taken, judge
from tests.support.rtmp_receiver import since_arrival
from tests.workers.webhook.sender.sending import until

FINE = Evidence(
    media=[
        Taken(1.0, "a", 7),
        Taken(1.1, "b", 8),
        Taken(2.0, "a", 9),
        Taken(2.2, "a", 7),
        Taken(5.0, "a", 9),
        Taken(30.0, "a", 11),
    ],
    stops=[Stop("a", 4.0, again=29.0), Stop("b", 2.0)],
    silent=[("a kill", 9.0)],
    states=[("a", "InProgress", "InProgress")],
)


def test_correct_pushes_have_no_fault() -> None:
    assert not judge(FINE).counts
    assert (FINE.sessions, FINE.late) == (4, 1.0)


@pytest.mark.parametrize(
    ("evidence", "kind"),
    [
        (replace(FINE, media=[*FINE.media, Taken(31.0, "a", 9)]), Kind.TOGETHER),
        (replace(FINE, media=[*FINE.media, Taken(2.1 + AFTER_STOP, "b", 8)]), Kind.LATE),
        (replace(FINE, silent=[("a kill", SILENT + 1)]), Kind.SILENT),
        (replace(FINE, states=[("a", "FailedPublication", "InProgress")]), Kind.UNEXPECTED),
        (replace(FINE, children=[12]), Kind.CHILDREN),
        (replace(FINE, secrets={"Kafka": 1}), Kind.SECRETS),
    ],
)
def test_each_kind_is_found(evidence: Evidence, kind: Kind) -> None:
    assert judge(evidence).counts == {kind: 1}


async def test_bytes_read_late_count_from_their_arrival() -> None:
    accepted: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    server = await asyncio.start_server(lambda *streams: accepted.put_nowait(streams), "127.0.0.1", 0)
    async with server:
        _, sender = await asyncio.open_connection(*server.sockets[0].getsockname())
        reader, taker = await accepted.get()
        sender.write(b"1234")
        assert await reader.readexactly(2) == b"12"
        arrived = time.monotonic()

        async def a_while_ago() -> bool:
            return since_arrival(taker) > 0.1

        await until(a_while_ago)
        assert await reader.readexactly(2) == b"34"
        assert time.monotonic() - since_arrival(taker) <= arrived + 0.01, "the kernel counts in milliseconds"
        sender.close()
        taker.close()
