"""Names of requested files: `<contentId>/assets/<filename><extension>`."""

from __future__ import annotations

from re import compile as regex
from typing import Final
from uuid import UUID

from domain.asset.values import CAPTIONS, EXTENSIONS, FOLDER, AssetType, CaptionKind
from domain.kernel.errors import Malformed

_LONGEST: Final = 180
_LONGEST_BYTES: Final = 240
"""Less than a file system allows: an extension and a suffix follow."""
_SUFFIX: Final = 8
_SEPARATORS: Final = "/\\"
_NO_WORD: Final = regex(r"[^A-Za-z0-9]+")


def stem(kind: AssetType, *, filename: str | None, name: str) -> str:
    """The name of the file without its extension: the one that was sent, else one made of the name of the asset. Raises `Malformed`
    for one that was sent and cannot be the name of a file."""
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
    """Where the path is taken: with a suffix that is made of the id of the asset, so that no two get the same one."""
    return path(content_id, f"{stem}-{key.hex[:_SUFFIX]}", kind=kind)


def caption_path(content_id: str, *, name: str, language: str, kind: CaptionKind, key: UUID | None = None) -> str:
    """Name the file of a text. Playlists and manifests name it too, so it has nothing that an address would have to encode. With
    `key` no other caption gets the same path."""
    parts = [_NO_WORD.sub("-", name)[:60].strip("-").lower() or "text", language, kind.value]
    suffix = "" if key is None else f"-{key.hex[:_SUFFIX]}"
    return f"{content_id}/{CAPTIONS}/{'.'.join(parts)}{suffix}{EXTENSIONS[AssetType.CAPTION]}"


def caption_parts(path: str) -> tuple[str, str]:
    """The other files of a caption: its playlist, and the segments in it."""
    stem = path.removesuffix(EXTENSIONS[AssetType.CAPTION])
    return (f"{stem}.m3u8", f"{stem}.segments.vtt")


def _fault(sent: str) -> str | None:
    if not sent.strip() or len(sent) > _LONGEST or len(sent.encode("utf-8", "replace")) > _LONGEST_BYTES:
        return f"must have 1 to {_LONGEST} characters that are not blank, and at most {_LONGEST_BYTES} bytes in UTF-8"
    if not sent.isprintable() or any(mark in sent for mark in (*_SEPARATORS, "..")):
        return "may not have slashes, backslashes, `..` or characters that cannot be seen"
    return "may not begin with a dot" if sent.startswith(".") else None


def _made_of(name: str) -> str:
    """The name of an asset may be any text."""
    seen = "".join("_" if one in _SEPARATORS or not one.isprintable() else one for one in name)
    short = seen.replace("..", "_").lstrip(". ")[:_LONGEST].encode("utf-8", "replace")[:_LONGEST_BYTES]
    return short.decode("utf-8", "ignore").rstrip() or "asset"
