"""`medialedger backup`: writes the database to one file, also while the product runs."""

from __future__ import annotations

import asyncio
import shutil
from argparse import Namespace
from datetime import UTC
from functools import partial
from pathlib import Path

import psycopg

from api.cli.output import end_line, show_bytes
from api.cli.run.database import check_owner, first_line, open_database
from api.kernel.version import product_version
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from domain.kernel.clock import iso
from projections.kernel.schema.builds import BUILD
from projections.kernel.sizes import shown
from workers.adapters.backup_archive import BackupError, Manifest, writing
from workers.adapters.postgres_dump import DumpError, dumping, newest_server

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


async def run(args: Namespace, settings: Settings) -> int:
    path: Path = args.file.absolute()
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
