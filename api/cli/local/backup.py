"""`medialedger backup`: writes the database to one file, also while the product runs."""

from __future__ import annotations

import asyncio
import shutil
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from api.cli import shell
from api.cli.command import NOT_WHOLE
from api.cli.output import end_line, show_bytes, show_event_count
from api.cli.run.database import DatabaseAccess, check_owner, first_line, open_database
from api.cli.run.home import create_home
from api.cli.terminal_text import printable
from api.kernel.version import product_version
from api.wiring.core import Core, core, prepare
from api.wiring.quiet import order_quiet
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.kernel.clock import iso
from domain.kernel.encryption import fingerprint
from projections.audit.verify import verify
from projections.consumers.timeline import BeyondTheLog, begin_epoch
from projections.kernel.schema.builds import BUILD
from projections.kernel.sizes import shown
from workers.adapters.backup_archive import Archive, BackupError, Manifest, reading, writing
from workers.adapters.embedded_postgres import EmbeddedPostgres
from workers.adapters.keyfiles import master_key, previous_master_key
from workers.adapters.postgres_dump import DumpError, dumping, newest_server, restore

_SNAPSHOT = """
SELECT pg_export_snapshot(), now(), (SELECT log_id FROM log_identity), coalesce(max(last_position), 0),
    (SELECT encode(chain_hash, 'hex') FROM commits ORDER BY number DESC LIMIT 1), pg_database_size(current_database())
FROM commits
"""
_KEYS = "SELECT fingerprint, previous FROM master_keys"
_ROLES = """
SELECT DISTINCT r.rolname FROM (
    SELECT relacl AS acl, relowner AS owner FROM pg_class
    UNION ALL SELECT proacl, proowner FROM pg_proc
    UNION ALL SELECT nspacl, nspowner FROM pg_namespace WHERE nspname !~ '^pg_'
) AS o, aclexplode(o.acl) AS a JOIN pg_roles r ON r.oid = a.grantee
WHERE a.grantee <> o.owner AND r.rolname !~ '^pg_'
"""
_SMALLEST = 8
"""The divisor for the smallest expected size of a dump: few dumps are smaller than an eighth of their database."""


async def write_backup(settings: Settings, path: Path) -> int:
    async with open_database(settings) as database:
        check_owner(database)
        try:
            media = settings.media_root if isinstance(settings.media_root, Path) else None
            manifest, size = await asyncio.to_thread(_write, path, database.owner, media)
        except (BackupError, DumpError) as error:
            raise StartError(str(error)) from None
        except psycopg.Error as error:
            raise StartError(f"the database cannot be read: {first_line(error)}") from None
        finally:
            end_line()
    print(f"{path}: the log up to position {manifest.head}, {shown(size)}")
    print(f"it does not contain the master key {settings.master_key_file}, without which it cannot be used: keep a copy elsewhere")
    if manifest.media_files:
        files = f"{manifest.media_files} media files ({shown(manifest.media_bytes)}) of {settings.media_root}"
        print(f"it does not contain {files}, only a list of their names")
    if media is None:
        print(f"it contains neither the media in {settings.media_root} nor a list of them; keep versions or a copy of the bucket")
    return 0


def _write(path: Path, url: str, media_root: Path | None) -> tuple[Manifest, int]:
    """Return the manifest and the size of the file. The dump and the manifest read one snapshot: the database as of one moment."""
    with psycopg.connect(url, application_name="medialedger backup") as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        version = connection.info.server_version
        if version // 10_000 > newest_server():
            raise BackupError(f"the database is PostgreSQL {version // 10_000}; use its own pg_dump")
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        row = connection.execute(_SNAPSHOT).fetchone()
        assert row is not None, "an aggregate gives a row"
        snapshot, now, log_id, head, chain_hash, size = row
        keys = connection.execute(_KEYS).fetchone() or ()
        roles = sorted(name for (name,) in connection.execute(_ROLES))
        _check_space(path, size)
        with writing(path, progress=partial(show_bytes, "written")) as archive:
            with dumping(url, snapshot=snapshot, without_rows=["public.builds"]) as source:
                archive.add_dump(source)
            files, media_bytes = archive.add_media(media_root)
            manifest = Manifest(
                product=product_version(),
                build=BUILD,
                postgres=version,
                made_at=iso(now.astimezone(UTC)),
                log_id=str(log_id),
                head=head,
                chain_hash=chain_hash or "",
                database_bytes=size,
                master_keys=tuple(filter(None, keys)),
                roles=tuple(roles),
                media_files=files,
                media_bytes=media_bytes,
            )
            archive.finish(manifest)
        return manifest, path.stat().st_size


def _check_space(path: Path, database: int) -> None:
    try:
        free = shutil.disk_usage(path.parent).free
    except OSError as error:
        raise BackupError(f"{path} cannot be written: {error.strerror or error}") from error
    if free < database // _SMALLEST:
        raise BackupError(f"{path.parent} has {shown(free)} free; a database of {shown(database)} does not fit")


_OWN_TABLES = """
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
"""
_REVOCATIONS = """
SELECT DISTINCT format('REVOKE ALL ON %%s %%s FROM %%I', o.kind, o.name, r.rolname) FROM (
    SELECT CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind, oid::regclass::text AS name, relacl AS acl FROM pg_class
    UNION ALL SELECT 'TABLE', attrelid::regclass::text, attacl FROM pg_attribute
    UNION ALL SELECT 'ROUTINE', oid::regprocedure::text, proacl FROM pg_proc
    UNION ALL SELECT 'SCHEMA', quote_ident(nspname), nspacl FROM pg_namespace
) AS o, aclexplode(o.acl) AS a JOIN pg_roles r ON r.oid = a.grantee
WHERE r.rolname = %s
"""
_HEAD = """
SELECT (SELECT log_id FROM log_identity)::text, last_position, encode(chain_hash, 'hex') FROM commits ORDER BY number DESC LIMIT 1
"""
_ROOM = 128 * 1024 * 1024


async def restore_backup(settings: Settings, file: Path, *, drill: bool) -> int:
    """Restore the back-up. All checks that can refuse it come before anything is created. The epoch begins, and a drill becomes
    quiet, before the log is verified, which may take long and be interrupted: the restored log is never used in the epoch of the
    back-up."""
    try:
        with reading(file) as archive:
            _check_build(archive.manifest)
            _check_master_key(archive.manifest, settings)
            if settings.database_url is None:
                _check_home(archive.manifest, settings.home)
            async with open_database(settings, make=True) as database:
                check_owner(database)
                await asyncio.to_thread(_restore, archive, database, settings)
                role = await prepare(database.url, owner=database.owner)
                await _begin_epoch(database.owner, file)
                head = _head(database.owner)
                if drill:
                    await _keep_quiet(core(database.url, role=role), file)
                code = await _verify(archive.manifest, database.owner, head=head)
            _print_missing(archive, settings)
    except (BackupError, DumpError) as error:
        raise StartError(str(error)) from None
    except psycopg.Error as error:
        raise StartError(f"the database cannot be restored: {first_line(error)}") from None
    return code


def _check_build(manifest: Manifest) -> None:
    if manifest.build > BUILD:
        raise StartError(f"the back-up was made by build {manifest.build} ({manifest.product}); this is build {BUILD}")


def _check_master_key(manifest: Manifest, settings: Settings) -> None:
    path = settings.master_key_file
    if not manifest.master_keys:
        return
    if not path.exists():
        raise StartError(
            f"there is no master key at {path} (MEDIALEDGER_MASTER_KEY_FILE); put the master key of the back-up there first"
        )
    available = {fingerprint(key) for key in (master_key(path), previous_master_key(path)) if key is not None}
    if not available >= set(manifest.master_keys):
        raise StartError(f"the back-up was encrypted with another master key than {path}")


def _check_home(manifest: Manifest, home: Path) -> None:
    if EmbeddedPostgres(home).exists:
        return  # it may be empty after a failed restore; this is checked when it runs
    create_home(home)
    free, needed = shutil.disk_usage(home).free, manifest.database_bytes + _ROOM
    if free < needed:
        raise StartError(f"{home} has {shown(free)} free; the database needs {shown(needed)}")


def _restore(archive: Archive, database: DatabaseAccess, settings: Settings) -> None:
    """Restore as the owner of the tables. The product's login gets none of the rights that it had in the backed-up database."""
    with psycopg.connect(database.owner, autocommit=True) as connection:
        row = connection.execute(_OWN_TABLES).fetchone()
        if row is None or row[0]:
            raise BackupError("the database is not empty; restore into a new one")
        there, made = connection.info.server_version // 10_000, archive.manifest.postgres // 10_000
        if there < made:
            raise BackupError(f"the back-up is of PostgreSQL {made}; the database is PostgreSQL {there}")
    creator = database.owner if settings.database_url is not None else EmbeddedPostgres(settings.home).attach()
    with psycopg.connect(creator, autocommit=True) as connection:
        for name in archive.manifest.roles:
            if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (name,)).fetchone() is None:
                _create_role(connection, name)
    with archive.dump() as source:
        restore(source, database.owner)
    if database.owner != database.url:
        _revoke_all(database)


def _create_role(connection: psycopg.Connection[tuple[object, ...]], name: str) -> None:
    try:
        connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(name)))
    except psycopg.errors.InsufficientPrivilege:
        raise BackupError(f"the role {name} does not exist, and this database user may not create it") from None


def _revoke_all(database: DatabaseAccess) -> None:
    """Revoke all direct grants of the product's login; it keeps those of the application's role."""
    with psycopg.connect(database.url) as product:
        login = product.execute("SELECT session_user").fetchone()
    with psycopg.connect(database.owner) as owner:
        for (statement,) in owner.execute(_REVOCATIONS, login).fetchall():
            owner.execute(statement.encode())


async def _verify(manifest: Manifest, url: str, *, head: tuple[Any, ...] | None) -> int:
    result = await asyncio.to_thread(partial(verify, url, progress=show_event_count))
    end_line()
    if not result.valid:
        print(f"the log is damaged at position {result.first_bad_position}: {result.reason}")
        return NOT_WHOLE
    if head is not None and head != (manifest.log_id, manifest.head, manifest.chain_hash):
        print(f"the log is not that of the back-up, which ends at position {manifest.head}")
        return NOT_WHOLE
    print(printable(f"the log is intact: {result.checked} events, as of {manifest.made_at}"))
    return 0


async def _begin_epoch(url: str, path: Path) -> None:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        epoch, since = await begin_epoch(connection, since=None, reason=f"restored from {path.name}")
    print(f"epoch {epoch} of the log has begun after position {since}")


def _head(url: str) -> tuple[Any, ...] | None:
    """Return the id of the restored log, its last position, and the hash of its chain."""
    with psycopg.connect(url) as connection:
        return connection.execute(_HEAD).fetchone()


async def _keep_quiet(wired: Core, path: Path) -> None:
    """Make the copy quiet before anything in it can start."""
    try:
        await wired.start()
        await order_quiet(wired, f"a drill with {path.name}", invocation=shell.invocation())
    finally:
        await wired.stop()
    print("the copy is quiet: nothing leaves it until `medialedger quiet off`")


def _print_missing(archive: Archive, settings: Settings) -> None:
    if isinstance(settings.media_root, Path) and (missing := archive.missing_media(settings.media_root)):
        print(f"{missing} of {archive.manifest.media_files} media files are not in {settings.media_root}; copy them there")
    print("clients and their keys were restored from the back-up")


async def begin_restored_epoch(settings: Settings, *, since: int | None, reason: str) -> int:
    """Begin the epoch as the owner of the tables: the role of the running product may not."""
    async with open_database(settings) as database:
        check_owner(database)
        await prepare(database.url, owner=database.owner)
        async with await psycopg.AsyncConnection.connect(database.owner) as connection:
            try:
                epoch, begun = await begin_epoch(connection, since=since, reason=reason)
            except BeyondTheLog as refusal:
                raise StartError(f"an epoch cannot begin after position {since}: {refusal}") from None
    print(f"epoch {epoch} of the log has begun after position {begun}; start the API and the workers again")
    return 0
