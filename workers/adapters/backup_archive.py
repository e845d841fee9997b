"""The file of a back-up: a ZIP archive with a dump of the database, the list of the media files, and a manifest, written last.

It is written under another name and renamed when it is complete, mode 0600. A truncated archive has no directory; the manifest
contains the SHA-256 of the other members, so an archive is checked before anything is restored from it.
"""

from __future__ import annotations

import json
import os
import secrets
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, ClassVar, Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from pydantic import ConfigDict, TypeAdapter

DUMP: Final = "database.dump"
MEDIA: Final = "media.txt"
_MANIFEST: Final = "manifest.json"
_FORMAT: Final = 1
_CHUNK: Final = 1 << 20
_MOST: Final = 1 << 20
"""The size limit of a manifest in bytes."""
_LONGEST: Final = 8192
"""The length limit of a line in the list of media, in bytes: a path has at most half of it."""


class BackupError(Exception):
    """Raised when a back-up cannot be written, or an archive is not complete. The text is one line."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of an archive. `head` and `chain_hash` are those of the log at the moment of the dump; `master_keys` are the
    fingerprints of the keys that its secrets need; `roles` have privileges on its tables; the media are counted but not in the
    archive."""

    product: str
    build: int
    postgres: int
    made_at: str
    log_id: str
    head: int
    chain_hash: str
    database_bytes: int
    master_keys: tuple[str, ...]
    roles: tuple[str, ...]
    media_files: int = 0
    media_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document(Manifest):
    """The manifest as it is written, with the format and the hashes of the other members."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid", strict=True)

    format: int
    sha256: Mapping[str, str]


_READ: Final = TypeAdapter(_Document)


class ArchiveWriter:
    """Writes an archive. `progress` is called with the number of bytes written so far."""

    def __init__(self, archive: ZipFile, progress: Callable[[int], None]) -> None:
        self._archive = archive
        self._progress = progress
        self._digests: dict[str, str] = {}

    def add_dump(self, source: IO[bytes]) -> None:
        digest, written = sha256(), 0
        with self._archive.open(_info(DUMP), "w", force_zip64=True) as member:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                member.write(chunk)
                written += len(chunk)
                self._progress(written)
        self._digests[DUMP] = digest.hexdigest()

    def add_media(self, root: Path | None) -> tuple[int, int]:
        """List the files below `root` with their sizes. Return their number and their bytes. None if media are elsewhere."""
        digest, files, size = sha256(), 0, 0
        with self._archive.open(_info(MEDIA, compressed=True), "w", force_zip64=True) as member:
            for path, each in () if root is None else _media(root):
                line = f"{each}\t{path}\n".encode(errors="surrogateescape")
                digest.update(line)
                member.write(line)
                files, size = files + 1, size + each
        self._digests[MEDIA] = digest.hexdigest()
        return files, size

    def finish(self, manifest: Manifest) -> None:
        document = {"format": _FORMAT, **asdict(manifest), "sha256": self._digests}
        self._archive.writestr(_info(_MANIFEST), json.dumps(document, indent=1) + "\n")


def _info(name: str, *, compressed: bool = False) -> ZipInfo:
    info = ZipInfo(name)
    info.external_attr = 0o600 << 16
    if compressed:
        info.compress_type = ZIP_DEFLATED
    return info


def _media(root: Path) -> Iterator[tuple[str, int]]:
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            try:
                yield os.path.relpath(path, root), os.lstat(path).st_size
            except FileNotFoundError:
                continue


@contextmanager
def writing(path: Path, *, progress: Callable[[int], None]) -> Iterator[ArchiveWriter]:
    """Write an archive, which appears at `path` when the block has ended, and not at all after an error."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        if path.exists():
            raise BackupError(f"{path} exists already")
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w+b") as file:
            with ZipFile(file, "w", allowZip64=True) as archive:
                yield ArchiveWriter(archive, progress)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        _sync(path.parent)
    except OSError as error:
        raise BackupError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Archive:
    """A complete archive: every byte was read once."""

    def __init__(self, archive: ZipFile, manifest: Manifest) -> None:
        self.manifest = manifest
        self._archive = archive

    def dump(self) -> IO[bytes]:
        return self._archive.open(DUMP)

    def missing_media(self, root: Path) -> int:
        """Return how many of the listed files do not exist below `root` with their size."""
        missing = 0
        with self._archive.open(MEDIA) as lines:
            while line := lines.readline(_LONGEST):
                size, _, name = os.fsdecode(line.rstrip(b"\n")).partition("\t")
                try:
                    missing += os.lstat(os.path.join(root, name)).st_size != int(size)
                except (OSError, ValueError):
                    missing += 1
        return missing


@contextmanager
def reading(path: Path) -> Iterator[Archive]:
    """Open an archive. Raises `BackupError` for a file that is not a back-up, or is not complete."""
    try:
        archive = ZipFile(path)
    except OSError as error:
        raise BackupError(f"{path} cannot be read: {error.strerror or error}") from error
    except BadZipFile:
        raise BackupError(f"{path} is not a back-up of medialedger, or is truncated") from None
    with archive:
        try:
            manifest = _check(archive)
        except (BadZipFile, zlib.error, EOFError, KeyError, ValueError, OSError, NotImplementedError, RuntimeError):
            raise BackupError(f"{path} is not a back-up of medialedger, or is damaged") from None
        yield Archive(archive, manifest)


def _check(archive: ZipFile) -> Manifest:
    for name in (DUMP, MEDIA, _MANIFEST):
        # Python's other decompressors unpack their whole input at once: a small archive could fill the memory.
        if archive.getinfo(name).compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise ValueError
    if archive.getinfo(_MANIFEST).file_size > _MOST:
        raise ValueError
    document = _READ.validate_json(archive.read(_MANIFEST))
    if document.format != _FORMAT:
        raise ValueError
    for name in (DUMP, MEDIA):
        digest = sha256()
        with archive.open(name) as member:
            while chunk := member.read(_CHUNK):
                digest.update(chunk)
        if digest.hexdigest() != document.sha256[name]:
            raise ValueError
    return document
