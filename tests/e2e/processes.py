"""The processes of one `medialedger up`, and connections to one of them. The kernel chooses the process, so the connection is
repeated until it is the wanted one."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

from tests.support.product import Product
from tests.support.waiting import until

_TRIES: Final = 200
_INODE: Final = 9
"""The column of /proc/net/tcp; 0 while no process has accepted the connection."""


def children(product: Product, kind: str) -> list[int]:
    """Return the processes of the API or of the workers."""
    title = f"medialedger: {kind} ".encode()
    return [pid for pid in _children(fork_server(product)) if _read(f"/proc/{pid}/cmdline").startswith(title)]


def fork_server(product: Product) -> int:
    """Return the process of the fork server; 0 while there is none."""
    servers = [pid for pid in _children(product.process.pid) if b"\0api.cli.run.process\0" in _read(f"/proc/{pid}/cmdline")]
    return servers[0] if servers else 0


def _children(pid: int) -> list[int]:
    return [int(child) for child in _read(f"/proc/{pid}/task/{pid}/children").split()]


def alive(pid: int) -> bool:
    """Return True if the process runs; a zombie does not."""
    return b"\nState:\t" in (status := _read(f"/proc/{pid}/status")) and b"\nState:\tZ" not in status


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Caller:
    """A connection to one process."""

    def __init__(self, address: str, pid: int, key: str) -> None:
        host, _, port = address.removeprefix("http://").partition(":")
        self._key = key
        others: list[HTTPConnection] = []
        try:
            for _ in range(_TRIES):
                self._http = HTTPConnection(host, int(port), timeout=60)
                self._http.connect()
                if _owned_by(pid, self._socket):
                    return
                others.append(self._http)  # closed later: its port would be used again
        finally:
            for each in others:
                each.close()
        raise AssertionError(f"no connection reached process {pid}")

    @property
    def _socket(self) -> socket.socket:
        assert isinstance(self._http.sock, socket.socket)
        return self._http.sock

    def close(self) -> None:
        self._http.close()

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request. `headers` are named with underscores."""
        sent = {"api-key": self._key, "content-type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        self._http.request(method, path, body if body is None or isinstance(body, bytes) else json.dumps(body), sent)
        response = self._http.getresponse()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())

    def first_frame(self, path: str) -> bytes:
        """Return the first event of a stream."""
        head = f"GET {path} HTTP/1.1\r\nhost: {self._http.host}:{self._http.port}\r\napi-key: {self._key}\r\n\r\n"
        self._socket.sendall(head.encode())
        got = b""
        while b"\n\n" not in got.partition(b"\r\n\r\n")[2]:
            piece = self._socket.recv(65536)
            assert piece, got
            got += piece
        return got.partition(b"\r\n\r\n")[2].partition(b"\r\n")[2]

    def rest(self) -> bytes:
        """Return everything that comes until the connection is closed."""
        got = b""
        while piece := self._socket.recv(65536):
            got += piece
        return got


def _owned_by(pid: int, connection: socket.socket) -> bool:
    """Wait until a process has accepted the connection, and return True if it is this one."""
    ours, theirs = connection.getsockname()[1], connection.getpeername()[1]
    line = re.compile(rf"^ *\d+: \w+:{theirs:04X} \w+:{ours:04X} .*$", re.MULTILINE)
    inodes: list[str] = []

    def accepted() -> bool:
        match = line.search(Path("/proc/net/tcp").read_text())
        inodes[:] = [] if match is None else [match[0].split()[_INODE]]
        return inodes not in ([], ["0"])

    until(accepted)
    newest_first = sorted(os.listdir(f"/proc/{pid}/fd"), key=int, reverse=True)
    return any(_link(Path(f"/proc/{pid}/fd/{entry}")) == f"socket:[{inodes[0]}]" for entry in newest_first)


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return ""
