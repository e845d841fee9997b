"""Parts of a CPIX document, and the collection of errors in it.

All errors are collected: a dry run reports all of them, a response to a packager the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from lxml import etree

from api.speke.cpix.elements import attribute, children, local_name
from api.speke.cpix.errors import CpixFault, SpekeError
from domain.content_key.aggregate import LONGEST_ID
from domain.drm.systems import DrmSystem

# lxml searches all namespaces in scope for each added element; thousands of namespaces would delay a response by seconds.
_MOST_NAMESPACES: Final = 100


@dataclass(slots=True)
class Faults:
    """The errors of one document, in the order in which they were found."""

    seen: list[SpekeError] = field(default_factory=list)

    def add(self, fault: CpixFault, element: etree._Element | None = None, **names: object) -> None:
        line: int | None = getattr(element, "sourceline", None)
        self.seen.append(SpekeError(fault, line=line, **names))


@dataclass(frozen=True, slots=True)
class KeyNode:
    """A ContentKey element. `kid` is None if the packager leaves its choice to the key provider."""

    element: etree._Element
    kid: UUID | None


@dataclass(frozen=True, slots=True)
class SystemNode:
    """A DRMSystem element; `key` is the index of its ContentKey in the document."""

    element: etree._Element
    system: DrmSystem
    key: int


def list_members(root: etree._Element, list_tag: str, tag: str, *, most: int, faults: Faults) -> list[etree._Element]:
    """Return the members of one list of the document; empty if the list is missing."""
    lists = [child for child in children(root) if child.tag == list_tag]
    if len(lists) > 1:
        faults.add(CpixFault.REPEATED_ELEMENT, lists[1], name=local_name(list_tag))
    if lists and len(lists[0].nsmap) > _MOST_NAMESPACES:
        faults.add(CpixFault.TOO_MANY, lists[0], most=_MOST_NAMESPACES, name="namespace declarations")
    members = [child for list_ in lists[:1] for child in children(list_) if child.tag == tag]
    if len(members) > most:
        faults.add(CpixFault.TOO_MANY, members[most], most=most, name=local_name(tag))
    return members[:most]


def kid_of(element: etree._Element, *, faults: Faults) -> UUID | None:
    """Return the kid that was sent; None if it is missing. A kid that is not a UUID is an error, and None too."""
    sent = attribute(element, "kid")
    if not sent:
        return None
    kid = uuid_of(sent)
    if kid is None:
        faults.add(CpixFault.NOT_A_UUID, element, attribute=f"{local_name(str(element.tag))}@kid")
    return kid


def uuid_of(sent: str) -> UUID | None:
    """Parse a UUID in the usual form only: UUID() would also accept braces, URNs and a text without dashes."""
    try:
        kid = UUID(sent)
    except ValueError:
        return None
    return kid if str(kid) == sent.lower() else None


# The SPEKE version and the content id of a request: docs/reference/api/key-provider.md#versions. A request is SPEKE v2 if it has
# a version header, CPIX@version or CPIX@contentId; otherwise it is v1. Each version of SPEKE belongs to one version of CPIX. The
# response has the version of the request.

V1: Final = "1"
_SPEKE_OF_CPIX: Final = {"2.3": "2.0", "2.4": "2.1"}


def version_of(root: etree._Element, header: str | None, *, faults: Faults) -> str:
    """Return the SPEKE version. `header` is X-Speke-Version. After an error the document is read as v2, which finds more errors."""
    requested = (header or "").strip()
    if requested in (V1, "1.0") or not (requested or "version" in root.attrib or "contentId" in root.attrib):
        return V1
    stated = attribute(root, "version")
    implied = _SPEKE_OF_CPIX.get(stated)
    if requested and requested not in _SPEKE_OF_CPIX.values():
        faults.add(CpixFault.UNSUPPORTED_SPEKE)
    elif not stated:
        faults.add(CpixFault.MISSING_VERSION, root)
    elif implied is None or (requested and requested != implied):
        faults.add(CpixFault.UNSUPPORTED_VERSION, root)
    return requested or implied or "2.0"


def content_id_of(root: etree._Element, version: str, *, faults: Faults) -> str:
    """Return the content id unchanged, because it is compared exactly."""
    name = "id" if version == V1 else "contentId"
    sent = str(root.get(name, ""))
    if not sent.strip():
        if version == V1:
            faults.add(CpixFault.MISSING_ATTRIBUTE, root, attribute="CPIX@id")
        else:
            faults.add(CpixFault.MISSING_CONTENT_ID, root)
    elif len(sent) > LONGEST_ID:
        faults.add(CpixFault.BAD_VALUE, root, attribute=f"CPIX@{name}", expected=f"at most {LONGEST_ID} characters")
    return sent
