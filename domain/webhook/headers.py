"""Custom request headers of a webhook: the text `additionalPropertiesJson`. docs/reference/api/webhooks.md#custom-headers.

The text is stored as it was sent, with null in place of each credential. Credentials are stored in the vault, by the names of their
headers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from domain.kernel.credentials import hints_at_credential
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.json_document import MEMBER, ClosedSection, checked

FIELD: Final = "additionalPropertiesJson"
MOST: Final = 64
LONGEST_NAME: Final = 256
LONGEST_VALUE: Final = 4096

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_RESERVED: Final = frozenset({"host", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect"})
_RESERVED_BEGINNINGS: Final = ("content-", "webhook-", "proxy-")


class Header(ClosedSection):
    """A header. A null value stands for the stored credential."""

    name: str
    value: str | None


class _HeaderDocument(ClosedSection):
    headers: tuple[Header, ...]
    notifications: tuple[Literal["log.sealed"], ...] = ()


@dataclass(frozen=True, slots=True)
class SplitHeaders:
    """The text that may be stored, and the credentials that were in it, by their names in the vault."""

    text: str
    credentials: Mapping[str, str] = field(repr=False)


def split_credentials(text: str) -> SplitHeaders:
    """Separate a text from its credentials. Raises `Malformed`, which names the path in the text and never repeats what was
    sent."""
    headers = _read(text)
    faults = [fault for index, header in enumerate(headers) for fault in _faults(header, index)]
    seen: set[str] = set()
    for index, header in enumerate(headers):
        if hints_at_credential(header.name):
            if secret_name(header.name) in seen:
                faults.append(FieldError(place(index, "name"), "occurs twice; a header with a credential may occur once"))
            seen.add(secret_name(header.name))
    if faults:
        raise Malformed(*faults)
    credentials = {
        secret_name(header.name): header.value
        for header in headers
        if header.value is not None and hints_at_credential(header.name)
    }
    return SplitHeaders(_masked(text, headers), credentials)


def headers_in(text: str | None) -> tuple[Header, ...]:
    """Return the headers of a stored text."""
    return _HeaderDocument.model_validate_json(text).headers if text is not None else ()


def notifications_in(text: str | None) -> tuple[str, ...]:
    """Return the notifications that a stored text requests in addition to changes of Events."""
    return _HeaderDocument.model_validate_json(text).notifications if text is not None else ()


def secret_name(header: str) -> str:
    return f"header:{header.lower()}"


def place(index: int, member: str) -> str:
    return f"{FIELD}.headers[{index}].{member}"


def _read(text: str) -> tuple[Header, ...]:
    headers = checked(_HeaderDocument, text, field=FIELD).headers
    json.loads(text, object_pairs_hook=_unique_keys)
    if len(headers) > MOST:
        raise Malformed.at(f"{FIELD}.headers", f"may have at most {MOST} entries")
    return headers


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise Malformed.at(FIELD, "has an object with the same key twice")
    return members


def _faults(header: Header, index: int) -> Iterator[FieldError]:
    name = header.name.lower()
    if not _TOKEN.fullmatch(name) or len(name) > LONGEST_NAME:
        yield FieldError(place(index, "name"), f"must be a header name of at most {LONGEST_NAME} characters")
    elif name in _RESERVED or name.startswith(_RESERVED_BEGINNINGS):
        yield FieldError(place(index, "name"), "is a header that the delivery sets itself")
    if header.value is not None and not (len(header.value) <= LONGEST_VALUE and _VALUE.fullmatch(header.value)):
        allowed = f"1 to {LONGEST_VALUE} characters of visible ASCII, with blanks inside only"
        yield FieldError(place(index, "value"), f"must be {allowed}")


def _masked(text: str, headers: tuple[Header, ...]) -> str:
    """Return the text with null in place of each credential. Each entry has two members, so their order determines the header
    that they belong to."""
    members = iter([header for header in headers for _ in range(2)])

    def mask(member: re.Match[str]) -> str:
        if member["value"] is None:  # the key of the whole array, or no key
            return member[0]
        header = next(members)
        hidden = json.loads(member["key"]) == "value" and hints_at_credential(header.name)
        return f"{member['key']}{member['colon']}null" if hidden else member[0]

    return MEMBER.sub(mask, text)
