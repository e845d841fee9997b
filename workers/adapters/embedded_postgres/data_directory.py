"""The data directory of the embedded server: its creation, its settings and its passwords.

It belongs to the account of the server, so anyone with that account may put a link in place of any of its files. Therefore root
writes nothing there: the settings are outside of it, in the home. Files in it are opened without following links.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import stat
from pathlib import Path

from workers.adapters.embedded_postgres.account import process_options
from workers.adapters.embedded_postgres.errors import EmbeddedPostgresError
from workers.adapters.embedded_postgres.programs import MAJOR, error_line, run
from workers.adapters.keyfiles import KeyFileError, first_secret_file, read_secret_file, sync_directory
from workers.adapters.system_account import open_private_directory, read_text_file, user_name

SUPERUSER = "postgres"
_LOOKED_AT = ("PG_VERSION", "postgresql.conf", "global", "base")
_TOO_OPEN = 0o027

_SETTINGS = """\
# Written by medialedger at every start. Put changes of your own into postgresql.auto.conf (ALTER SYSTEM).
include = '{data}/postgresql.conf'
listen_addresses = ''
unix_socket_permissions = 0700
max_connections = 250
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


class DataDirectory:
    """The directory `postgres` of a home. The settings and the passwords are next to it."""

    def __init__(self, home: Path, *, programs: Path) -> None:
        self.path = home / "postgres"
        self.settings = home / "postgres.conf"
        self._home = home
        self._password_file = home / "postgres-password"
        self._programs = programs

    @property
    def exists(self) -> bool:
        return self._version() is not None

    def prepare(self, account: pwd.struct_passwd | None) -> None:
        """Create the directory if there is none. Raises `EmbeddedPostgresError` if it belongs to another user or another major
        version, or its password is missing."""
        if not self.exists:
            self._initialise(account)
        version = self._version()
        if version != MAJOR:
            raise EmbeddedPostgresError(
                f"{self.path} belongs to PostgreSQL {version}; this medialedger includes PostgreSQL {MAJOR}"
            )
        self._check_owner(os.geteuid() if account is None else account.pw_uid)
        if not self._password_file.exists():
            raise EmbeddedPostgresError(f"{self._password_file} is missing; {self.path} cannot be opened without it")

    def configure(self, account: pwd.struct_passwd | None) -> None:
        """Write the product's settings, readable by the server's group."""
        built_with = run([str(self._programs / "pg_config"), "--configure"], **process_options(account))
        lz4 = "wal_compression = lz4\n" if "--with-lz4" in built_with.stdout else ""
        text = _SETTINGS.format(data=str(self.path).replace("'", "''")) + lz4
        new = self.settings.with_suffix(".conf.new")
        new.unlink(missing_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            if account is not None:
                os.fchown(file.fileno(), -1, account.pw_gid)
                os.fchmod(file.fileno(), 0o640)
        new.replace(self.settings)

    def password(self) -> str:
        """Return the password of the superuser."""
        return _read_secret(self._password_file)

    def password_of(self, role: str) -> str:
        """Return the password of another login, generated if it is missing."""
        file = self._home / f"postgres-password-{role}"
        try:
            return _read_secret(file) if file.exists() else first_secret_file(file, secrets.token_urlsafe(32))
        except KeyFileError as error:
            raise EmbeddedPostgresError(str(error)) from error

    def _version(self) -> str | None:
        try:
            text = read_text_file(self.path / "PG_VERSION")
        except PermissionError:
            raise EmbeddedPostgresError(self._of_another(self.path, os.geteuid())) from None
        except OSError as error:
            raise EmbeddedPostgresError(f"{self.path / 'PG_VERSION'} cannot be read: {error.strerror or error}") from error
        return None if text is None else text.strip()

    def _check_owner(self, wanted: int) -> None:
        """Check the owner of the files. PostgreSQL reads only files of its own user, and otherwise just reports that its settings
        contain errors. This finds a home that was copied without its owners."""
        for path in (self.path, *(self.path / name for name in _LOOKED_AT)):
            if path.exists() and path.stat().st_uid != wanted:
                raise EmbeddedPostgresError(self._of_another(path, wanted))
        mode = stat.S_IMODE(self.path.stat().st_mode)
        if mode & _TOO_OPEN:
            raise EmbeddedPostgresError(f"{self.path} is open to other users (mode {mode:04o}): chmod -R go= {self.path}")

    def _of_another(self, path: Path, wanted: int) -> str:
        name = user_name(wanted)
        return f"{path} belongs to {user_name(path.stat().st_uid)}, not to {name}: chown -R {name}: {self.path}"

    def _initialise(self, account: pwd.struct_passwd | None) -> None:
        """Create the directory under another name and rename it when it is complete: an interrupted first start leaves nothing to
        repair. The directories around it stay root's, so the account of the server cannot put another one in its place."""
        if self.path.exists() and any(self.path.iterdir()):
            raise EmbeddedPostgresError(f"{self.path} is neither empty nor a PostgreSQL data directory")
        new = self._home / "postgres.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        if account is not None:
            os.chown(new, -1, account.pw_gid)
            new.chmod(0o710)
        if not self._password_file.exists():
            first_secret_file(self._password_file, secrets.token_urlsafe(32))
        password = new / "password"
        with open(os.open(password, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self.password())
            if account is not None:
                os.fchown(file.fileno(), account.pw_uid, account.pw_gid)
        os.close(open_private_directory(new / "data", account))
        self._initdb(new / "data", password=password, account=account)
        os.rename(new / "data", self.path)
        sync_directory(self._home)
        shutil.rmtree(new)

    def _initdb(self, data: Path, *, password: Path, account: pwd.struct_passwd | None) -> None:
        """Run `initdb`. The built-in locale C.UTF-8 needs no locale of the system, folds case beyond ASCII, and its collation never
        changes."""
        arguments = [
            *(str(self._programs / "initdb"), f"--pgdata={data}", f"--username={SUPERUSER}"),
            *("--auth=scram-sha-256", f"--pwfile={password}", "--encoding=UTF8", "--locale=C"),
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--data-checksums"),
        ]
        done = run(arguments, **process_options(account))
        if done.returncode:
            raise EmbeddedPostgresError(f"PostgreSQL cannot create its data directory: {error_line(done.stderr)}")


def _read_secret(file: Path) -> str:
    try:
        return read_secret_file(file)
    except KeyFileError as error:
        raise EmbeddedPostgresError(str(error)) from error
