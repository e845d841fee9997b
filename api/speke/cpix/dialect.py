"""The SPEKE version and the content id of a request: docs/reference/api/key-provider.md#versions.

A request is SPEKE v2 if it has a version header, CPIX@version or CPIX@contentId; otherwise it is v1. Each version of SPEKE
belongs to one version of CPIX. The response has the version of the request.
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
    """Return the SPEKE version. `header` is X-Speke-Version. After an error the document is read as v2, which finds more errors."""
    requested = (header or "").strip()
    if requested in (V1, "1.0") or not (requested or "version" in root.attrib or "contentId" in root.attrib):
        return V1
    stated = attribute(root, "version")
    implied = _SPEKE_OF_CPIX.get(stated)
    if requested and requested not in _SPEKE_OF_CPIX.values():
        faults.add(Fault.UNSUPPORTED_SPEKE)
    elif not stated:
        faults.add(Fault.MISSING_VERSION, root)
    elif implied is None or (requested and requested != implied):
        faults.add(Fault.UNSUPPORTED_VERSION, root)
    return requested or implied or "2.0"


def content_id_of(root: etree._Element, version: str, *, faults: Faults) -> str:
    """Return the content id unchanged, because it is compared exactly."""
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
