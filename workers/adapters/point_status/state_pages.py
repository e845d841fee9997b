"""Pages on which servers report the state of a publishing point: SMIL with `meta`, and JSON or text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from lxml import etree

from domain.kernel.iso_8601 import moment_of
from domain.kernel.untrusted_xml import HasDoctype, NotXml, parsed_xml
from workers.ports.points import PointSilent

_STATE: Final = re.compile(r"[a-z][a-z0-9 _-]{0,31}")
_WALLCLOCK: Final = re.compile(r"(?:wallclock\()?\s*([0-9T:.Z+-]{10,40})\s*\)?")
_ENDS: Final = ("end", "clipEnd", "begin", "clipBegin")
_MEMBERS: Final = ("state", "lastupdated", "receivingdata")
_WORD: Final = re.compile(r"""(?i)["']?\b(state|lastUpdated|receivingData)\b["']?\s*[:=]\s*["']?([^\s"'&;,<>]{1,64})""")
_TRUTH: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_UNSTORABLE: Final = re.compile(r"[\x00\ud800-\udfff]")
"""Characters that JSON can contain and a text in the database cannot: NUL, and half of a surrogate pair."""
_LONGEST_MARK: Final = 64
_LATEST_SECOND: Final = 253_402_300_799
"""The end of the year 9999."""


@dataclass(frozen=True, slots=True)
class StatePage:
    """The content of a page; "" and None for missing values. `updated` is copied as it is written there."""

    state: str
    updated: str = ""
    receiving: bool | None = None
    newest: datetime | None = None
    """The latest time in the list of an archive."""

    @property
    def last_updated(self) -> datetime | None:
        """The time of the last update. The beginning of 1970 means never, and gives None."""
        moment = self.newest if self.updated == "" else _instant(self.updated)
        return moment if moment is not None and moment.timestamp() > 0 else None


def smil_page(body: bytes) -> StatePage:
    """Parse `<meta name="state" content="started"/>`, `updated` and the times of clips. Raises `PointSilent`."""
    try:
        root = parsed_xml(body).getroot()
    except NotXml:
        raise PointSilent("answer", "It answered with something that is not XML.") from None
    except HasDoctype:
        raise PointSilent("answer", "It answered with XML that has a document type, which is refused.") from None
    if etree.QName(root).localname != "smil":
        raise PointSilent("answer", "It answered with XML that is not SMIL.")
    members = {str(meta.get("name")).lower(): str(meta.get("content") or "") for meta in root.iter("{*}meta")}
    return StatePage(_state(members.get("state", "")), _mark(members.get("updated", "")), newest=_newest(root))


def status_page(body: bytes) -> StatePage:
    """Parse JSON with `state`, `lastUpdated` and `receivingData`, or a text with values for these words. Raises `PointSilent`."""
    try:
        text = body.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise PointSilent("answer", "It answered with something that is not text in UTF-8.") from None
    if text.startswith("<"):
        raise PointSilent("answer", "It answered with HTML or XML instead of a status.")
    members = _members(text)
    state = _state(_plain(members.get("state")))
    if not state:
        raise PointSilent("answer", "Its answer contains no state.")
    receiving = _TRUTH.get(_plain(members.get("receivingdata")).lower())
    return StatePage(state, _mark(_plain(members.get("lastupdated"))), receiving)


def _members(text: str) -> Mapping[str, Any]:
    if text.startswith("{"):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise PointSilent("answer", "It answered with something that is not JSON.") from None
        return {name.lower(): value for name, value in document.items() if name.lower() in _MEMBERS}
    return {match[1].lower(): match[2] for match in reversed(list(_WORD.finditer(text)))}


def _plain(value: object) -> str:
    """Return the text of a value, without characters that cannot be stored; empty for a list or an object."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _UNSTORABLE.sub("", str(value)).strip() if isinstance(value, str | int | float) else ""


def _mark(text: str) -> str:
    """Return the text of the page without characters that cannot be stored: NUL, and half of a surrogate pair."""
    return "".join(character if character.isprintable() else " " for character in text[:_LONGEST_MARK]).strip()


def _state(text: str) -> str:
    word = text.strip().lower()
    if word and not _STATE.fullmatch(word):
        raise PointSilent("answer", "Its answer has no readable word for the state.")
    return word


def _newest(root: etree._Element) -> datetime | None:
    """Return the end of the latest clip in the list of an archive."""
    moments = [
        moment
        for element in root.iter("{*}video", "{*}audio", "{*}par", "{*}seq", "{*}ref", "{*}textstream")
        for name in _ENDS
        if (value := element.get(name)) is not None
        and (clock := _WALLCLOCK.fullmatch(value.strip())) is not None
        and (moment := moment_of(clock[1])) is not None
    ]
    return max(moments, default=None)


def _instant(text: str) -> datetime | None:
    """Parse ISO 8601, or seconds or milliseconds since 1970."""
    try:
        number = float(text)
    except ValueError:
        return moment_of(text)
    seconds = number / 1000 if number > 1e11 else number
    return datetime.fromtimestamp(seconds, UTC) if 0 <= seconds <= _LATEST_SECOND else None
