"""The data directory of the embedded server: its creation, its configuration and its password."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
from pathlib import Path

from workers.adapters.embedded_postgres.account import change_owner, process_options
from workers.adapters.embedded_postgres.errors import EmbeddedPostgresError
from workers.adapters.embedded_postgres.programs import MAJOR, error_line, run
from workers.adapters.keyfiles import KeyFileError, read_secret_file, sync_directory, write_secret_file

SUPERUSER = "postgres"

_SETTINGS = """\
# Written by medialedger at every start. Put changes of your own into postgresql.auto.conf (ALTER SYSTEM).
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
    """The directory `postgres` of a home, and the file of its superuser's password."""

    def __init__(self, home: Path, *, programs: Path) -> None:
        self.path = home / "postgres"
        self._home = home
        self._password_file = home / "postgres-password"
        self._programs = programs

    @property
    def exists(self) -> bool:
        return (self.path / "PG_VERSION").exists()

    def prepare(self, account: pwd.struct_passwd | None) -> None:
        """Create the directory when there is none. Raises when it belongs to another major version, or its password is missing."""
        if not self.exists:
            self._initialise(account)
        version = (self.path / "PG_VERSION").read_text().strip()
        if version != MAJOR:
            raise EmbeddedPostgresError(f"{self.path} belongs to PostgreSQL {version}; this medialedger has PostgreSQL {MAJOR}")
        if not self._password_file.exists():
            raise EmbeddedPostgresError(f"{self._password_file} is missing; {self.path} cannot be opened without it")

    def configure(self, account: pwd.struct_passwd | None) -> None:
        """Write the product's settings."""
        built_with = run([str(self._programs / "pg_config"), "--configure"], **process_options(account))
        lz4 = "wal_compression = lz4\n" if "--with-lz4" in built_with.stdout else ""
        new = self.path / "medialedger.conf.new"
        new.write_text(_SETTINGS + lz4)
        new.chmod(0o600)
        change_owner(account, new)
        new.replace(self.path / "medialedger.conf")

    def password(self) -> str:
        try:
            return read_secret_file(self._password_file)
        except KeyFileError as error:
            raise EmbeddedPostgresError(str(error)) from error

    def _initialise(self, account: pwd.struct_passwd | None) -> None:
        """Create the directory under another name and rename it when it is complete: an interrupted first start leaves nothing to
        repair."""
        if self.path.exists() and any(self.path.iterdir()):
            raise EmbeddedPostgresError(f"{self.path} is neither empty nor a PostgreSQL data directory")
        new = self._home / "postgres.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        if not self._password_file.exists():
            write_secret_file(self._password_file, secrets.token_urlsafe(32))
        password = new / "password"
        write_secret_file(password, self.password())
        change_owner(account, new, password)
        self._initdb(new / "data", password=password, account=account)
        os.rename(new / "data", self.path)
        sync_directory(self._home)
        shutil.rmtree(new)

    def _initdb(self, data: Path, *, password: Path, account: pwd.struct_passwd | None) -> None:
        """Run `initdb`. The built-in locale C.UTF-8 needs no locale of the system, folds case beyond ASCII, and its order of texts
        never changes."""
        arguments = [
            *(str(self._programs / "initdb"), f"--pgdata={data}", f"--username={SUPERUSER}"),
            *("--auth=scram-sha-256", f"--pwfile={password}", "--encoding=UTF8", "--locale=C"),
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--data-checksums"),
        ]
        done = run(arguments, **process_options(account))
        if done.returncode:
            raise EmbeddedPostgresError(f"PostgreSQL cannot create its data directory: {error_line(done.stderr)}")
        with (data / "postgresql.conf").open("a") as file:
            file.write("\ninclude_if_exists = 'medialedger.conf'\n")
            file.flush()
            os.fsync(file.fileno())
