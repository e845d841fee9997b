"""Which SPEKE is spoken, and for which content. reference/drm.md, b "Dispatch" and "Errors".

SPEKE v2 says so in a header or in CPIX@version or CPIX@contentId; without all of them it is v1. A version of SPEKE belongs to one
of CPIX, and is answered with itself.
"""

from __future__ import annotations

from typing import Final

from lxml import etree

from api.speke.cpix.document import Faults
from api.speke.cpix.elements import attribute
from api.speke.cpix.errors import Fault
from domain.content_key.aggregate import LONGEST_ID

V1: Final = "1"
_SPEKE_OF_CPIX: Final = {"2.3": "2.0", "2.4": "2.1"}


def version_of(root: etree._Element, header: str | None, *, faults: Faults) -> str:
    """`header` is X-Speke-Version. After a fault the document is read on as v2, where more can be said of it."""
    asked = (header or "").strip()
    if asked in (V1, "1.0") or not (asked or "version" in root.attrib or "contentId" in root.attrib):
        return V1
    told = attribute(root, "version")
    implied = _SPEKE_OF_CPIX.get(told)
    if asked and asked not in _SPEKE_OF_CPIX.values():
        faults.add(Fault.UNSUPPORTED_SPEKE)
    elif not told:
        faults.add(Fault.MISSING_VERSION, root)
    elif implied is None or (asked and asked != implied):
        faults.add(Fault.UNSUPPORTED_VERSION, root)
    return asked or implied or "2.0"


def content_id_of(root: etree._Element, version: str, *, faults: Faults) -> str:
    """As it was sent: it is a name that others gave."""
    name = "id" if version == V1 else "contentId"
    sent = str(root.get(name, ""))
    if not sent.strip():
        if version == V1:
            faults.add(Fault.MISSING_ATTRIBUTE, root, attribute="CPIX@id")
        else:
            faults.add(Fault.MISSING_CONTENT_ID, root)
    elif len(sent) > LONGEST_ID:
        faults.add(Fault.BAD_VALUE, root, attribute=f"CPIX@{name}", expected=f"at most {LONGEST_ID} characters")
    return sent
