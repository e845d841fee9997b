"""A log that is sealed, and what its export says to the verifier that needs no product."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from io import StringIO
from pathlib import Path

import psycopg
import pytest

from api.cli import verify_export
from domain.kernel.encryption import SecretCipher
from projections.audit.chain import leaf_of
from projections.audit.checkpoint_keys import PUBLIC_KEYS
from projections.audit.log_export import ExportSelection, export_log, export_stream
from projections.audit.sealing import AT_ONCE, Sealed, seal
from projections.audit.stored_log import StoredLog
from projections.kernel.database.database import Database
from projections.log.hash_chain import commit_leaf, genesis, root
from projections.vault.vault import Vault

VERIFIER = Path(verify_export.__file__)


class SealedLog:
    """The log of a test, on one connection of a superuser, so that what an owner did can be undone."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]], folder: Path, vault: Vault) -> None:
        self.connection = connection
        self.stored = StoredLog(connection)
        self.vault = vault
        self._folder = folder

    @classmethod
    @contextmanager
    def opened(cls, url: str, folder: Path) -> Iterator[SealedLog]:
        vault = Vault(Database(url), SecretCipher(bytes(32)))
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET session_replication_role = replica")  # past the triggers of the log
            yield cls(connection, folder, vault)

    @property
    def key(self) -> str:
        """The first one: what an auditor was given."""
        return str(self.stored.rows(PUBLIC_KEYS)[0][0])

    def seal(self, *, rotate: bool = False, most: int = AT_ONCE) -> Sealed:
        sealed = seal(self.stored, self.vault, rotate=rotate, most=most)
        assert sealed is not None
        return sealed

    def keep(self, sealed: Sealed) -> Path:
        path = self._folder / f"kept-{sealed.number}"
        path.write_text(sealed.note)
        return path

    def export(self, selection: ExportSelection | None = None, *, name: str = "log.ndjson") -> Path:
        return self._write(export_log(self.stored, selection or ExportSelection()), name)

    def export_stream(self, stream: str) -> Path:
        return self._write(export_stream(self.stored, stream), "stream.ndjson")

    def _write(self, pieces: Iterable[bytes], name: str) -> Path:
        path = self._folder / name
        with path.open("wb") as file:
            file.writelines(pieces)
        return path

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Undo all changes made within the block."""
        with self.connection.transaction(force_rollback=True):
            yield

    def edit(self, statement: str) -> None:
        assert self.connection.execute(statement.encode()).rowcount >= 1, statement

    def forge_commits(self) -> None:
        """Write new roots and a new chain that fit the present events, like an owner who knows the formats."""
        [(log_id,)] = self.stored.rows("SELECT log_id FROM log_identity")
        chain = genesis(log_id)
        for last, first, micros in self.stored.rows(
            "SELECT last_position, first_position, (extract(epoch FROM recorded_at) * 1000000)::bigint FROM commits ORDER BY 1"
        ):
            events = self.stored.rows(
                "SELECT originator_id, originator_version, topic, event_id, metadata::text, state, salt, metadata_hash, state_hash "
                "FROM events WHERE position BETWEEN %s AND %s ORDER BY position",
                first,
                last,
            )
            made = root([leaf_of(event) for event in events])
            place = commit_leaf(first=first, count=last - first + 1, recorded_micros=micros, root=made)
            chain = sha256(b"\2" + chain + place).digest()
            self.stored.write("UPDATE commits SET root = %s, chain_hash = %s WHERE last_position = %s", made, chain, last)

    def forget_checkpoints(self) -> None:
        """Remove the checkpoints, like an owner who lets the product sign the log anew with its own key."""
        for table in ("checkpoint_anchors", "checkpoints", "log_tiles", "stream_heads", "stream_map_nodes"):
            self.connection.execute(f"DELETE FROM {table}".encode())


def verdict(*arguments: str | Path) -> tuple[int, str]:
    """Run the verifier in this process. Return its exit code and output."""
    with pytest.MonkeyPatch.context() as patch:
        output = StringIO()
        patch.setattr(sys, "argv", ["verify.py", *map(str, arguments)])
        patch.setattr(sys, "stdout", output)
        try:
            verify_export.main()
        except SystemExit as end:
            return int(str(end.code)), output.getvalue()
        return 0, output.getvalue()
