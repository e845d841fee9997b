"""The server process: its start, recovery, take-over and stop."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from re import compile as regex
from typing import NamedTuple
from urllib.parse import quote

import psycopg

from workers.adapters.embedded_postgres.account import (
    grant_reach,
    make_private_directory,
    process_options,
    server_account,
)
from workers.adapters.embedded_postgres.data_directory import SUPERUSER, DataDirectory
from workers.adapters.embedded_postgres.errors import EmbeddedPostgresError
from workers.adapters.embedded_postgres.programs import error_line, program_directory
from workers.adapters.embedded_postgres.roles import DATABASE, LOGIN, OWNER, bring_up, is_unchanged, restrict
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


START_SECONDS = 120.0  # a crash recovery replays up to max_wal_size of log
STOP_SECONDS = 60.0
QUIT_SECONDS = 10.0
LOG_BYTES = 10 * 1024 * 1024
_SOCKET_PATH_BYTES = 107
_POLL = 0.02


class DatabaseUrls(NamedTuple):
    """The URLs of the product's database: for the running product, and for its owner, which migrates it."""

    product: str
    owner: str


class EmbeddedPostgres:
    """The server of one home. `start` and `stop` block; call them from a thread."""

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self.log = self.home / "postgres.log"
        self.programs = program_directory()
        self._data_directory = DataDirectory(self.home, programs=self.programs)
        self.data = self._data_directory.path
        self._pid_file = PidFile(self.data)
        self._process: subprocess.Popen[bytes] | None = None
        self._launched = False
        self._log_start = 0
        self._abandoned = threading.Event()

    def start(self) -> str:
        """Start the server, or take over a running one. Return the URL of the product's database for the superuser."""
        deadline = time.monotonic() + START_SECONDS
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._launched = False  # a killed server of an earlier start may not have ended yet: that is no failure of this start
        account = server_account()
        if account is not None:
            grant_reach(account, self.data, wheel=self.programs.parent)
        self._data_directory.prepare(account)
        postmaster = self._wait_until_ready(account, deadline=deadline)
        self._bring_up(postmaster)
        return self._url(postmaster)

    def attach(self) -> str:
        """Return the URL like `start`, for a server that another process has started."""
        return self._url(self._ready())

    def logins(self) -> DatabaseUrls:
        """Return the product's URLs of the running server, which do not use the superuser."""
        postmaster = self._ready()
        return DatabaseUrls(self._url(postmaster, user=LOGIN), self._url(postmaster, user=OWNER))

    @property
    def exists(self) -> bool:
        """True if the home has a database."""
        return self._data_directory.exists

    @property
    def running(self) -> bool:
        return self._pid_file.postmaster() is not None

    @property
    def usable(self) -> bool:
        """True if the product's login opens the database, with the intended settings."""
        return is_unchanged(self.logins().product)

    def abandon(self) -> None:
        """Make a `start` in another thread raise. The caller must still call `stop`."""
        self._abandoned.set()

    def stop(self) -> None:
        """Do a fast shutdown: transactions are rolled back, data is flushed. A server that does not end is then stopped without a
        flush; its next start recovers from the write-ahead log.

        This returns when the process has ended: a server removes its pid file a moment before.
        """
        for number, seconds in ((signal.SIGINT, STOP_SECONDS), (signal.SIGQUIT, QUIT_SECONDS)):
            pid = self._pid()
            if pid is None:
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            deadline = time.monotonic() + seconds
            while (self._pid() == pid or self._pid_file.is_server(pid)) and time.monotonic() < deadline:
                time.sleep(_POLL)
        if self._pid() is not None:
            raise EmbeddedPostgresError(f"the embedded database (process {self._pid()}) does not stop; see {self.log}")

    def _wait_until_ready(self, account: pwd.struct_passwd | None, *, deadline: float) -> Postmaster:
        """Wait until the pid file has the status `ready`, which follows recovery. Launch the server if none is running."""
        while time.monotonic() < deadline and not self._abandoned.is_set():
            postmaster = self._pid_file.postmaster()
            if postmaster is not None and postmaster.ready:
                return postmaster
            if postmaster is None and self._pid() is None:
                self._launch(account)
            self._abandoned.wait(_POLL)
        if self._abandoned.is_set():
            raise EmbeddedPostgresError("the start of the embedded database was interrupted")
        raise EmbeddedPostgresError(f"the embedded database was not ready within {START_SECONDS:.0f} s; see {self.log}")

    def _launch(self, account: pwd.struct_passwd | None) -> None:
        """Start the process in its own session: Ctrl-C in the terminal must not stop it before the last request is answered."""
        if self._launched and not self._old_backends_exist():
            reason = error_line(self._read_server_log())
            raise EmbeddedPostgresError(f"the embedded database did not start: {reason}; see {self.log}")
        directory = self._socket_directory(account)
        self._pid_file.remove_stale(directory)
        self._data_directory.configure(account)
        sockets = str(directory).replace('"', '""')
        arguments = [
            *(str(self.programs / "postgres"), "-D", str(self.data)),
            *("-c", f"config_file={self._data_directory.settings}", "-c", f'unix_socket_directories="{sockets}"'),
        ]
        log = self._open_log()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the wheel's own program, no shell
                arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **process_options(account)
            )
            self._launched = True
        finally:
            os.close(log)

    def trim_log(self) -> None:
        """Move a large log to `postgres.log.1`. The server continues writing to the same file, which it appends to, so the file is
        emptied and not replaced. A line that is written in between is lost."""
        if not self.log.exists() or self.log.stat().st_size <= LOG_BYTES:
            return
        new = self.log.with_suffix(".log.new")
        new.unlink(missing_ok=True)
        with self.log.open("rb") as log, open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as old_log:
            shutil.copyfileobj(log, old_log)
            os.truncate(self.log, 0)
        new.replace(self.log.with_suffix(".log.1"))
        self._log_start = 0

    def _open_log(self) -> int:
        self.trim_log()
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        self._log_start = os.fstat(log).st_size
        return log

    def _read_server_log(self) -> str:
        """Return the lines that the server has logged since it was launched."""
        with self.log.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def _old_backends_exist(self) -> bool:
        """Return True if the launch failed because backends of a killed server have not ended yet; they end within a moment."""
        return "pre-existing shared memory block" in self._read_server_log()

    def _socket_directory(self, account: pwd.struct_passwd | None) -> Path:
        """Return the data directory, or, if its path is too long for a socket, a private directory named by the path's hash."""
        name = "medialedger-" + hashlib.sha256(os.fsencode(self.data)).hexdigest()[:16]
        runtime = [Path(f"/run/user/{os.geteuid()}")] if account is None else []
        temporary = [Path(tempfile.gettempdir()), Path("/tmp")]  # noqa: S108 - see make_private_directory
        elsewhere = [base / name for base in (*runtime, *temporary) if base.is_dir()]
        for directory in (self.data, *elsewhere):
            if len(os.fsencode(directory / SOCKET_NAME)) <= _SOCKET_PATH_BYTES:
                if directory != self.data:
                    make_private_directory(directory, account)
                return directory
        raise EmbeddedPostgresError(
            f"every directory has too long a path for the database's socket; set TMPDIR (home: {self.home})"
        )

    def _ready(self) -> Postmaster:
        postmaster = self._pid_file.postmaster()
        if postmaster is None or not postmaster.ready:
            raise EmbeddedPostgresError(f"no embedded database is running in {self.home}; start `medialedger up` first")
        return postmaster

    def _bring_up(self, postmaster: Postmaster) -> None:
        try:
            bring_up(self._url(postmaster, database="postgres"), self._data_directory.password_of)
            restrict(self._url(postmaster))
        except psycopg.Error as error:
            raise EmbeddedPostgresError(f"the embedded database cannot be opened: {error_line(str(error))}") from error

    def _pid(self) -> int | None:
        """Return the process id of the child process while it runs, else that of the server that was taken over."""
        if self._process is not None and self._process.poll() is None:
            return self._process.pid
        postmaster = self._pid_file.postmaster()
        return postmaster.pid if postmaster else None

    def _url(self, postmaster: Postmaster, *, user: str = SUPERUSER, database: str = DATABASE) -> str:
        host = quote(str(postmaster.socket_directory), safe="")
        secret = self._data_directory.password() if user == SUPERUSER else self._data_directory.password_of(user)
        return f"postgresql://{user}:{quote(secret, safe='')}@/{database}?host={host}&port=5432"
