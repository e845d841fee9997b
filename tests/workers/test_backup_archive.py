"""Archives that the product did not write, and that an operator may be asked to restore."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED, ZipFile

import pytest

from workers.adapters.backup_archive import DUMP, MEDIA, BackupError, Manifest, reading, writing

MANIFEST: Mapping[str, Any] = {
    "format": 1,
    "product": "1",
    "build": 1,
    "postgres": 180000,
    "made_at": "2031-01-02T00:00:00.000Z",
    "log_id": "x",
    "head": 0,
    "chain_hash": "",
    "database_bytes": 1,
    "master_keys": [],
    "roles": [],
}


def archive(path: Path, *, media: bytes = b"", compressed: int = ZIP_STORED, **changed: Any) -> Path:
    dump = bytes(100_000)
    hashes = {DUMP: sha256(dump).hexdigest(), MEDIA: sha256(media).hexdigest()}
    with ZipFile(path, "w", compressed) as made:
        made.writestr(DUMP, dump)
        made.writestr(MEDIA, media, compress_type=ZIP_DEFLATED)
        made.writestr("manifest.json", json.dumps({**MANIFEST, "sha256": hashes, **changed}))
    return path


@pytest.mark.parametrize("compressed", [ZIP_STORED, ZIP_DEFLATED])
def test_a_whole_archive_is_read(tmp_path: Path, compressed: int) -> None:
    with reading(archive(tmp_path / "a", compressed=compressed, master_keys=["k"], media_files=3)) as opened:
        assert (opened.manifest.master_keys, opened.manifest.media_files) == (("k",), 3)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    fields = {name: value for name, value in MANIFEST.items() if name != "format"}
    manifest = Manifest(**{**fields, "master_keys": ("a",), "roles": ("b",)})
    with (tmp_path / "dump").open("w+b") as dump, writing(tmp_path / "a", progress=lambda _: None) as written:
        written.add_dump(dump)
        written.add_media(tmp_path / "none")
        written.finish(manifest)
    with reading(tmp_path / "a") as opened:
        assert [getattr(opened.manifest, name) for name in fields] == [getattr(manifest, name) for name in fields]


@pytest.mark.parametrize("compressed", [ZIP_BZIP2, ZIP_LZMA])
def test_a_compression_that_unpacks_all_at_once_is_refused(tmp_path: Path, compressed: int) -> None:
    with pytest.raises(BackupError, match="damaged"), reading(archive(tmp_path / "a", compressed=compressed)):
        pass


@pytest.mark.parametrize(
    "changed",
    [
        {"build": "9"},
        {"build": [1]},
        {"build": None},
        {"roles": [1]},
        {"roles": "ab"},
        {"master_keys": [None]},
        {"database_bytes": "x"},
        {"product": 1},
        {"sha256": []},
        {"more": 1},
        {"format": 9},
    ],
)
def test_a_manifest_of_other_types_is_refused(tmp_path: Path, changed: Mapping[str, Any]) -> None:
    with pytest.raises(BackupError, match="damaged"), reading(archive(tmp_path / "a", **changed)):
        pass


@pytest.mark.parametrize("text", ["null", "[]", "1", "[" * 100_000, '{"format": ' + "9" * 10_000 + "}"])
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    with ZipFile(tmp_path / "a", "w") as made:
        for name, content in {DUMP: "", MEDIA: "", "manifest.json": text}.items():
            made.writestr(name, content)
    with pytest.raises(BackupError, match="damaged"), reading(tmp_path / "a"):
        pass


def test_a_list_of_media_of_any_content_is_counted(tmp_path: Path) -> None:
    """The last line has no line end; each piece of a long one counts."""
    root = tmp_path / "media"
    root.mkdir()
    (root / "there").write_bytes(b"x")
    lines = b"1\tthere\n2\tthere\nno number\tthere\n\n1\ta\0b\n1\t\xff\n" + b"1\t" + b"x" * 10_000
    with reading(archive(tmp_path / "a", media=lines)) as opened:
        assert opened.missing_media(root) == 7
