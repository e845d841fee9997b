"""Sockets of several processes on one port."""

from __future__ import annotations

import socket

import pytest

from api.cli.run.sockets import bound_sockets
from api.wiring.startup import StartError


def test_the_kernel_distributes_connections_over_all_copies() -> None:
    with bound_sockets("127.0.0.1", port=0, copies=3) as copies:
        listening = [sock for (sock,) in copies]
        assert len({sock.getsockname() for sock in listening}) == 1
        for sock in listening:
            sock.listen()
            sock.setblocking(False)
        callers = [socket.create_connection(listening[0].getsockname()) for _ in range(60)]
        accepted = [[connection for connection in map(_accepted, [sock] * 60) if connection] for sock in listening]
        assert sum(map(len, accepted)) == 60
        assert all(accepted)
        for connection in (*callers, *(each for some in accepted for each in some)):
            connection.close()


def _accepted(sock: socket.socket) -> socket.socket | None:
    try:
        return sock.accept()[0]
    except BlockingIOError:
        return None


@pytest.mark.parametrize("before", [1, 2])
@pytest.mark.parametrize("copies", [1, 2])
def test_a_port_in_use_is_refused_also_where_it_could_be_shared(before: int, copies: int) -> None:
    with bound_sockets("127.0.0.1", port=0, copies=before) as used:
        for (sock,) in used:
            sock.listen()
        port = used[0][0].getsockname()[1]
        with (
            pytest.raises(StartError, match=f"port {port} on 127.0.0.1 is in use"),
            bound_sockets("127.0.0.1", port=port, copies=copies),
        ):
            pass
