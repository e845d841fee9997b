"""Many new connections at once: the connections of one client do not delay those of other clients for long."""

from __future__ import annotations

import asyncio
import socket

import uvloop

from api.cli.run.serving import Server, server_config
from api.cli.run.sockets import ACCEPTED_AT_ONCE
from api.guards.limits import ConnectionLimits, Connections
from tests.api.http.toy import Toy

WAITING = 100
TURNS = WAITING // ACCEPTED_AT_ONCE + 4


def test_several_connections_are_accepted_in_one_turn_of_the_event_loop() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(_accepted()) == WAITING


async def _accepted() -> int:
    """Return how many of the waiting connections are accepted after a few turns."""
    counted = Connections(ConnectionLimits(connections=2 * WAITING, per_address=2 * WAITING))
    server = Server(server_config(Toy().app, counted, seconds=1), listening=lambda: None)
    listening = socket.create_server(("127.0.0.1", 0), backlog=2 * WAITING)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0)
    callers = [socket.create_connection(listening.getsockname()) for _ in range(WAITING)]
    for _ in range(TURNS):
        await asyncio.sleep(0)
    accepted = len(server.server_state.connections)
    for caller in callers:
        caller.close()
    server.should_exit = True
    await serving
    assert listening.fileno() == -1
    return accepted
