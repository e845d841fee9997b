"""A primary and its hot standby, on one machine; and what turns the standby into the primary."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.product import kill_postgres
from workers.adapters.embedded_postgres import EmbeddedPostgres
from workers.adapters.embedded_postgres.account import process_options, server_account
from workers.adapters.embedded_postgres.programs import run
from workers.adapters.embedded_postgres.server import SOCKET_NAME


class Replicated:
    """Two servers in two folders. `url` names both hosts; `primary` and `standby` are the address of one. Every method blocks.

    `synchronous`: a commit is acknowledged when the standby has it on its disk."""

    def __init__(self, folder: Path, *, synchronous: bool) -> None:
        self._homes = [folder / "one", folder / "two"]
        self._servers: list[EmbeddedPostgres] = []
        self._synchronous = synchronous
        self.primary = self.standby = ""

    @property
    def url(self) -> str:
        """The standby is named first, so that whoever takes the first host takes the wrong one."""
        hosts = ",".join(str(conninfo_to_dict(conninfo)["host"]) for conninfo in (self.standby, self.primary))
        return make_conninfo(self.primary, host=hosts, port="5432,5432")

    def start(self) -> str:
        self._homes[0].parent.mkdir(parents=True, exist_ok=True)
        self._servers = [EmbeddedPostgres(self._homes[0])]
        self.primary = self._servers[0].start()
        self._copy()
        return self.url

    def stop(self) -> None:
        for server in reversed(self._servers):
            server.stop()

    def cut(self) -> None:
        """The standby gets nothing any more."""
        _set(self.standby, "primary_conninfo = ''")
        self._until(self.standby, "SELECT count(*) = 0 FROM pg_stat_wal_receiver")

    def fall_behind(self) -> None:
        """Acknowledge commits that the standby does not have, from this call on."""
        _set(self.primary, "synchronous_standby_names = ''")
        self._until(self.primary, "SHOW synchronous_standby_names", "")
        self.cut()

    def freeze(self) -> None:
        """The standby confirms nothing any more, and the primary waits for it."""
        _set(self.primary, "synchronous_standby_names = 'nobody'")
        self._until(self.primary, "SHOW synchronous_standby_names", "nobody")

    def thaw(self) -> None:
        _set(self.primary, "synchronous_standby_names = '*'")

    def switch(self, *, accident: bool) -> None:
        """The standby becomes the primary. `accident`: the former one is killed, and what the standby lacks is lost."""
        former, promoted = self._servers
        if accident:
            kill_postgres(former.home)
        else:
            former.stop()
        _set(self.standby, "synchronous_standby_names = ''")
        with psycopg.connect(self.standby, autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")
        self._servers = [promoted]
        self._homes.reverse()
        self.primary, self.standby = self.standby, self.primary

    def replace(self) -> None:
        """The former primary is thrown away, and a new standby made in its place."""
        shutil.rmtree(self._homes[1])
        self._copy()

    def _copy(self) -> None:
        home, account = self._homes[1], server_account()
        home.mkdir(mode=0o711)
        parts = conninfo_to_dict(self.primary)
        if account is not None:
            os.chown(home, account.pw_uid, account.pw_gid)
        options = process_options(account)
        password = {"env": {**options["env"], "PGPASSWORD": str(parts["password"])}}
        program = self._servers[0].programs / "pg_basebackup"
        where = ["--pgdata", str(home / "postgres"), "--host", str(parts["host"]), "--username", str(parts["user"])]
        done = run([str(program), *where, "--checkpoint=fast", "--write-recovery-conf"], **options | password)
        assert done.returncode == 0, done.stderr
        (home / "postgres" / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)  # that of the primary, copied with the rest
        os.chown(home, os.geteuid(), os.getegid())
        shutil.copy(self._homes[0] / "postgres-password", home / "postgres-password")
        server = EmbeddedPostgres(home)
        self.standby = server.start()
        self._servers.append(server)
        if self._synchronous:
            _set(self.primary, "synchronous_standby_names = '*'")
            self._until(self.primary, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")

    def _until(self, url: str, question: str, wanted: object = True) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while connection.execute(question.encode()).fetchone() != (wanted,):
                pass


def _set(url: str, setting: str) -> None:
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(f"ALTER SYSTEM SET {setting}".encode())
        owner.execute("SELECT pg_reload_conf()")
