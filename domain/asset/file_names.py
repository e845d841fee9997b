"""Names of requested files: `<contentId>/assets/<filename><extension>`."""

from __future__ import annotations

from re import compile as regex
from typing import Final
from uuid import UUID

from domain.asset.values import CAPTIONS, EXTENSIONS, FOLDER, AssetType, CaptionKind
from domain.kernel.errors import Malformed

_LONGEST: Final = 180
_LONGEST_BYTES: Final = 240
"""The limit of a sent name, which is below that of a file system, because an extension and a suffix follow."""
_SUFFIX: Final = 8
_SEPARATORS: Final = "/\\"
_NO_WORD: Final = regex(r"[^A-Za-z0-9]+")


def stem(kind: AssetType, *, filename: str | None, name: str) -> str:
    """Return the name of the file without its extension: the name that was sent, else one made from the asset's name. Raises
    `Malformed` if the name that was sent cannot be a file name."""
    if not filename:
        return _made_of(name)
    extension = EXTENSIONS[kind]
    sent = filename[: -len(extension)] if filename.lower().endswith(extension) else filename
    fault = _fault(sent)
    if fault is not None:
        raise Malformed.at("filename", fault)
    return sent


def path(content_id: str, stem: str, *, kind: AssetType) -> str:
    return f"{content_id}/{FOLDER}/{stem}{EXTENSIONS[kind]}"


def other_path(content_id: str, stem: str, *, kind: AssetType, key: UUID) -> str:
    """Return an alternative for a path that is taken. Its suffix is derived from the id of the asset, so no two assets get the same
    one."""
    return path(content_id, f"{stem}-{key.hex[:_SUFFIX]}", kind=kind)


def caption_path(content_id: str, *, name: str, language: str, kind: CaptionKind, key: UUID | None = None) -> str:
    """Return the path of a caption's file. Playlists and manifests contain it too, so no character needs to be encoded in a URL.
    With a `key`, no other caption gets the same path."""
    parts = [_NO_WORD.sub("-", name)[:60].strip("-").lower() or "text", language, kind.value]
    suffix = "" if key is None else f"-{key.hex[:_SUFFIX]}"
    return f"{content_id}/{CAPTIONS}/{'.'.join(parts)}{suffix}{EXTENSIONS[AssetType.CAPTION]}"


def caption_parts(path: str) -> tuple[str, str]:
    """Return the other files of a caption: its playlist, and the segments in it."""
    stem = path.removesuffix(EXTENSIONS[AssetType.CAPTION])
    return (f"{stem}.m3u8", f"{stem}.segments.vtt")


def _fault(sent: str) -> str | None:
    if not sent.strip() or len(sent) > _LONGEST or len(sent.encode("utf-8", "replace")) > _LONGEST_BYTES:
        return f"must have 1 to {_LONGEST} characters that are not blank, and at most {_LONGEST_BYTES} bytes in UTF-8"
    if not sent.isprintable() or any(mark in sent for mark in (*_SEPARATORS, "..")):
        return "may not have slashes, backslashes, `..` or invisible characters"
    return "may not begin with a dot" if sent.startswith(".") else None


def _made_of(name: str) -> str:
    """Return a file name that resembles the name of an asset, which may be any text."""
    visible = "".join("_" if char in _SEPARATORS or not char.isprintable() else char for char in name)
    short = visible.replace("..", "_").lstrip(". ")[:_LONGEST].encode("utf-8", "replace")[:_LONGEST_BYTES]
    return short.decode("utf-8", "ignore").rstrip() or "asset"
