"""A guarded connection without HTTP, to the first address of a host that answers. Each one is checked when its socket is made."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import Sequence

from aiohttp.abc import ResolveResult

from workers.adapters.outbound_guard import AddressGuard, NotPublic
from workers.ports.outbound import OutboundFailed


async def connect(
    guard: AddressGuard, addresses: Sequence[ResolveResult], *, name: str | None
) -> tuple[StreamReader, StreamWriter]:
    """Connect, with TLS for this `name` unless it is None. Raises `OutboundRefused`, `OutboundFailed` or `TimeoutError`."""
    return await _streams(await connect_socket(guard, addresses), name)


async def connect_socket(guard: AddressGuard, addresses: Sequence[ResolveResult]) -> socket.socket:
    """Return a connected socket. Raises `OutboundRefused`, `OutboundFailed` or `TimeoutError`."""
    reason = "none of its addresses answers"
    for address in addresses:
        place = (address["host"], address["port"])
        try:
            opened = guard.socket((address["family"], socket.SOCK_STREAM, address["proto"], "", place))
        except NotPublic as inside:
            raise inside.refusal() from None
        try:
            opened.setblocking(False)
            await asyncio.get_running_loop().sock_connect(opened, place)
        except OSError as fault:
            opened.close()
            reason = os.strerror(fault.errno) if fault.errno else reason
            continue
        except BaseException:
            opened.close()
            raise
        return opened
    raise OutboundFailed("connect", f"The host cannot be reached: {reason}.")


async def _streams(opened: socket.socket, name: str | None) -> tuple[StreamReader, StreamWriter]:
    if name is None:
        return await asyncio.open_connection(sock=opened)
    try:
        return await asyncio.open_connection(sock=opened, ssl=ssl.create_default_context(), server_hostname=name)
    except ssl.SSLCertVerificationError as fault:
        raise OutboundFailed("tls", f"The certificate of the host cannot be trusted: {fault.verify_message}.") from None
    except ssl.SSLError:
        raise OutboundFailed("tls", "No secure connection could be negotiated with the host.") from None
