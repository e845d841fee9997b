"""Text tracks that were found in the source of a film, as its content's `metadata.json` lists them: docs/reference/api/vod.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from re import ASCII, IGNORECASE
from re import compile as regex
from typing import Any, Final

from domain.asset.values import FOUND, CaptionKind
from domain.kernel.strict_json import NotStrict, strict_json

_MOST: Final = 100
_FILE: Final = regex(rf"{FOUND}/[A-Za-z0-9-]{{1,120}}\.vtt")
_LANGUAGE: Final = regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,8}", ASCII | IGNORECASE)
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class FoundCaption:
    language: str
    kind: CaptionKind
    name: str


def found_captions(text: bytes) -> Mapping[str, FoundCaption] | None:
    """Parse the tracks, by their files below the folder of the content. Return None if the metadata list none, as those of other
    products. An entry that cannot be used is left out."""
    try:
        document = strict_json(text)
    except NotStrict:
        return None
    listed = document.get("captions") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        return None
    return dict(filter(None, (_caption(track) for track in listed[:_MOST] if isinstance(track, dict))))


def _caption(listed: Mapping[str, Any]) -> tuple[str, FoundCaption] | None:
    file, language, kind, name = (_text(listed.get(part)) for part in ("file", "language", "kind", "name"))
    if not _FILE.fullmatch(file) or not _LANGUAGE.fullmatch(language) or kind not in set(CaptionKind):
        return None
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        return None
    return file, FoundCaption(language, CaptionKind(kind), name)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
