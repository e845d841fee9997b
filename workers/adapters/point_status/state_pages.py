"""Pages on which servers tell the state of a publishing point: SMIL with `meta`, and JSON or text."""

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
from workers.ports import PointSilent

_STATE: Final = re.compile(r"[a-z][a-z0-9 _-]{0,31}")
_WALLCLOCK: Final = re.compile(r"(?:wallclock\()?\s*([0-9T:.Z+-]{10,40})\s*\)?")
_ENDS: Final = ("end", "clipEnd", "begin", "clipBegin")
_MEMBERS: Final = ("state", "lastupdated", "receivingdata")
_WORD: Final = re.compile(r"""(?i)["']?\b(state|lastUpdated|receivingData)\b["']?\s*[:=]\s*["']?([^\s"'&;,<>]{1,64})""")
_TRUTH: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_UNSTORABLE: Final = re.compile(r"[\x00\ud800-\udfff]")
"""What JSON can say and no text of the database can hold: NUL, and half of a surrogate pair."""
_LONGEST_MARK: Final = 64
_LATEST_SECOND: Final = 253_402_300_799
"""Of the year 9999."""


@dataclass(frozen=True, slots=True)
class StatePage:
    """What a page says; "" and None: nothing. `updated` is as it is written there."""

    state: str
    updated: str = ""
    receiving: bool | None = None
    newest: datetime | None = None
    """The latest time of what an archive holds."""

    @property
    def last_updated(self) -> datetime | None:
        """The beginning of 1970 means never."""
        told = self.newest if self.updated == "" else _instant(self.updated)
        return told if told is not None and told.timestamp() > 0 else None


def smil_page(body: bytes) -> StatePage:
    """What `<meta name="state" content="started"/>` and `updated` say, and the times of clips. Raises `PointSilent`."""
    try:
        root = parsed_xml(body).getroot()
    except NotXml:
        raise PointSilent("answer", "It answered with something that is not XML.") from None
    except HasDoctype:
        raise PointSilent("answer", "It answered with XML that has a document type, which is refused.") from None
    if etree.QName(root).localname != "smil":
        raise PointSilent("answer", "It answered with XML that is not SMIL.")
    told = {str(meta.get("name")).lower(): str(meta.get("content") or "") for meta in root.iter("{*}meta")}
    return StatePage(_state(told.get("state", "")), _mark(told.get("updated", "")), newest=_newest(root))


def status_page(body: bytes) -> StatePage:
    """JSON with `state`, `lastUpdated` and `receivingData`, or a text that gives values to these words. Raises `PointSilent`."""
    try:
        text = body.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise PointSilent("answer", "It answered with something that is not text in UTF-8.") from None
    if text.startswith("<"):
        raise PointSilent("answer", "It answered with HTML or XML, and not with a status.")
    told = _members(text)
    state = _state(_plain(told.get("state")))
    if not state:
        raise PointSilent("answer", "Its answer does not say a state.")
    receiving = _TRUTH.get(_plain(told.get("receivingdata")).lower())
    return StatePage(state, _mark(_plain(told.get("lastupdated"))), receiving)


def _members(text: str) -> Mapping[str, Any]:
    if text.startswith("{"):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise PointSilent("answer", "It answered with something that is not JSON.") from None
        return {name.lower(): value for name, value in document.items() if name.lower() in _MEMBERS}
    return {found[1].lower(): found[2] for found in reversed(list(_WORD.finditer(text)))}


def _plain(value: object) -> str:
    """The text of a value that is no list and no object, without what cannot be stored."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _UNSTORABLE.sub("", str(value)).strip() if isinstance(value, str | int | float) else ""


def _mark(text: str) -> str:
    """As the page has it, without what no text can be stored with: half a character, and the character 0."""
    return "".join(one if one.isprintable() else " " for one in text[:_LONGEST_MARK]).strip()


def _state(text: str) -> str:
    word = text.strip().lower()
    if word and not _STATE.fullmatch(word):
        raise PointSilent("answer", "Its answer has no readable word for the state.")
    return word


def _newest(root: etree._Element) -> datetime | None:
    """Of the clips that an archive lists, the end of the latest one."""
    found = [
        moment
        for element in root.iter("{*}video", "{*}audio", "{*}par", "{*}seq", "{*}ref", "{*}textstream")
        for name in _ENDS
        if (value := element.get(name)) is not None
        and (clock := _WALLCLOCK.fullmatch(value.strip())) is not None
        and (moment := moment_of(clock[1])) is not None
    ]
    return max(found, default=None)


def _instant(text: str) -> datetime | None:
    """ISO 8601, or seconds or milliseconds since 1970."""
    try:
        number = float(text)
    except ValueError:
        return moment_of(text)
    seconds = number / 1000 if number > 1e11 else number
    return datetime.fromtimestamp(seconds, UTC) if 0 <= seconds <= _LATEST_SECOND else None
