"""`postmaster.pid`: the file in which a PostgreSQL server writes its process id, its socket directory and its status."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from re import compile as regex

from workers.adapters.embedded_postgres.errors import EmbeddedPostgresError
from workers.adapters.system_account import read_text_file

SOCKET_NAME = ".s.PGSQL.5432"
"""The name of the socket in its directory. The port is only a part of this name."""
_SOCKET_DIRECTORY, _STATUS = 4, 7
"""Line numbers in the file, from 0."""
_PID = regex(r"[1-9][0-9]{0,9}")


@dataclass(frozen=True, slots=True)
class Postmaster:
    """The main process of a running server."""

    pid: int
    socket_directory: Path
    status: str

    @property
    def ready(self) -> bool:
        """True if the server answers queries. A standby does, too."""
        return self.status in ("ready", "standby")


class PidFile:
    """The pid file of a data directory."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._path = data / "postmaster.pid"

    def postmaster(self) -> Postmaster | None:
        """Return the running server of the data directory; None if there is none."""
        lines = self._lines()
        if not lines or not self.is_server(int(lines[0])):
            return None
        directory = Path(lines[_SOCKET_DIRECTORY]) if len(lines) > _SOCKET_DIRECTORY else self._data
        return Postmaster(int(lines[0]), directory, lines[_STATUS].strip() if len(lines) > _STATUS else "starting")

    def is_server(self, pid: int) -> bool:
        """Return True if the process is a server of this data directory. Its working directory is the data directory, which
        distinguishes it from another program with the same process id."""
        try:
            return os.path.samefile(f"/proc/{pid}/cwd", self._data)
        except OSError:
            return False

    def remove_stale(self, sockets: Path) -> None:
        """Remove the file of a server that has ended, if another program has its process id now: PostgreSQL would not start. Raises
        `EmbeddedPostgresError` if the server runs in another container, whose process ids are not visible here.

        The lock of the socket is removed only in the directory `sockets`, because the account of the server can write any other
        directory into the file.
        """
        lines = self._lines()
        if not lines:
            return
        directory = Path(lines[_SOCKET_DIRECTORY]) if len(lines) > _SOCKET_DIRECTORY else None
        if directory is not None and _accepts_connections(directory / SOCKET_NAME):
            raise EmbeddedPostgresError(f"{self._data} is in use by a server outside this container (process {lines[0]} there)")
        if Path(f"/proc/{lines[0]}").exists():
            self._path.unlink(missing_ok=True)
            if directory == sockets:
                (sockets / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)

    def _lines(self) -> Sequence[str]:
        """Return the lines; none if the first one is not a process id."""
        try:
            lines = (read_text_file(self._path) or "").splitlines()
        except OSError as error:
            raise EmbeddedPostgresError(f"{self._path} cannot be read: {error.strerror or error}") from error
        return lines if lines and _PID.fullmatch(lines[0].strip()) else []


def _accepts_connections(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client, contextlib.suppress(OSError):
        client.connect(str(path))
        return True
    return False
