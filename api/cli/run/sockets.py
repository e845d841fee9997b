"""The listening sockets. They are bound before anything slow starts, so that a used port is reported at once."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final

from api.wiring.startup import StartError

ACCEPTED_AT_ONCE: Final = 16
"""The number of connections of one socket that are accepted in a turn of the event loop."""
_ADDRESS_UNAVAILABLE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


@contextmanager
def bound_sockets(
    host: str, *, port: int, copies: int = 1, setting: str = "MEDIALEDGER_PORT"
) -> Iterator[list[list[socket.socket]]]:
    """Bind one socket for each address of `host`, all with the same port, for each of the `copies`, among which the kernel
    distributes new connections. Port 0 chooses a free port. `setting` is the setting that error messages suggest to change."""
    sockets: list[list[socket.socket]] = [[]]
    try:
        _bind_all(host, port, sockets=sockets[0], setting=setting)
        if copies > 1:
            _share(sockets, copies)
        yield sockets
    finally:
        for sock in chain.from_iterable(sockets):
            sock.close()


def with_duplicates(sockets: Sequence[socket.socket]) -> list[socket.socket]:
    """Return the sockets with further descriptors of each, for one event loop. libuv accepts one connection per descriptor in a
    turn; without duplicates, 600 new connections of one client would hold up all others for 600 turns, which are seconds when turns
    are long."""
    return [*sockets, *(sock.dup() for sock in sockets for _ in range(ACCEPTED_AT_ONCE - 1))]


def _share(sockets: list[list[socket.socket]], copies: int) -> None:
    """Bind the other copies. The first sockets were bound without SO_REUSEPORT, so that a used port was refused; only now may
    others share it."""
    for sock in sockets[0]:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    for _ in range(copies - 1):
        sockets.append([])
        for sock in sockets[0]:
            sockets[-1].append(_bind(sock.family, sock.getsockname(), shared=True))


def _bind_all(host: str, port: int, *, sockets: list[socket.socket], setting: str) -> None:
    """Bind each usable address. `localhost` may have an IPv6 address that this machine lacks; one bound address is enough."""
    missing: OSError | None = None
    for family, address in _addresses(host, port):
        chosen = sockets[0].getsockname()[1] if sockets else port
        try:
            sockets.append(_bind(family, (address[0], chosen, *address[2:])))
        except OSError as error:
            if error.errno not in _ADDRESS_UNAVAILABLE:
                raise _start_error(error, host, port=port, setting=setting) from error
            missing = error
    if missing is not None and not sockets:
        raise _start_error(missing, host, port=port, setting=setting) from missing


def _addresses(host: str, port: int) -> Sequence[tuple[socket.AddressFamily, Any]]:
    try:
        results = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise StartError(f"MEDIALEDGER_HOST: {host} is not an address of this machine") from error
    return list(dict.fromkeys((family, address) for family, _, _, _, address in results))


def _bind(family: int, address: tuple[Any, ...], *, shared: bool = False) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


def _start_error(error: OSError, host: str, *, port: int, setting: str) -> StartError:
    if error.errno == errno.EADDRINUSE:
        return StartError(f"port {port} on {host} is in use; stop the other program or set {setting}")
    if error.errno == errno.EACCES:
        return StartError(f"port {port} on {host} is reserved for root; set {setting} to 1024 or above")
    return StartError(f"cannot listen on {host}, port {port}: {(error.strerror or str(error)).lower()}")
