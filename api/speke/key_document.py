"""CPIX documents that hold keys in the clear: how keys come in from elsewhere and go there. Issue 6, "medialedger keys".

Not what a packager sends: such a document is between two people who may know the keys. No message tells what stood in it.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence

from lxml import etree

from api.speke.cpix.document import uuid_of
from api.speke.cpix.elements import (
    CONTENT_KEY,
    CONTENT_KEY_LIST,
    CPIX,
    DATA,
    PLAIN_VALUE,
    PSKC,
    SECRET,
    attribute,
    children,
)
from api.speke.cpix.parsing import parsed, printed
from domain.content_key.aggregate import Purpose
from projections.content_keys.store import KeyBrought, KeyGiven


class UnfitDocument(Exception):
    """One sentence for the person who brought the document."""


def keys_of(document: bytes, *, client: str) -> list[KeyBrought]:
    """Every key of the document; all of them must be fit. Raises `SpekeError` for what is not XML at all."""
    root = parsed(document).getroot()
    if root.tag != f"{{{CPIX}}}CPIX":
        raise UnfitDocument("the root element is not CPIX in the namespace urn:dashif:org:cpix")
    content_id = attribute(root, "contentId") or attribute(root, "id")
    if not content_id:
        raise UnfitDocument("the document names no content: CPIX has neither contentId nor id")
    found = [key for one in children(root) if one.tag == CONTENT_KEY_LIST for key in children(one) if key.tag == CONTENT_KEY]
    if not found:
        raise UnfitDocument("the document has no ContentKey")
    return [_brought(element, content_id=content_id, client=client) for element in found]


def document_of(content_id: str, keys: Sequence[KeyGiven]) -> bytes:
    """What `keys_of` reads."""
    root = etree.Element(f"{{{CPIX}}}CPIX", {"contentId": content_id, "version": "2.3"}, nsmap={"cpix": CPIX, "pskc": PSKC})
    listed = etree.SubElement(root, CONTENT_KEY_LIST)
    for given in keys:
        element = etree.SubElement(listed, CONTENT_KEY, {"kid": str(given.kid), "explicitIV": b64encode(given.iv).decode()})
        secret = etree.SubElement(etree.SubElement(element, DATA), SECRET)
        etree.SubElement(secret, PLAIN_VALUE).text = b64encode(given.key).decode()
    etree.indent(root)
    return printed(root.getroottree())


def _brought(element: etree._Element, *, content_id: str, client: str) -> KeyBrought:
    where = f"the ContentKey at line {element.sourceline}"
    kid = uuid_of(attribute(element, "kid"))
    if kid is None:
        raise UnfitDocument(f"{where} has no kid that is a UUID")
    plain = element.find(f"{DATA}/{SECRET}/{PLAIN_VALUE}")
    if plain is None:
        raise UnfitDocument(f"{where} has no Data/Secret/PlainValue: only keys in the clear can be taken in")
    key = _sixteen(plain.text or "", f"{where} has a PlainValue that is not base64 of 16 bytes")
    sent = attribute(element, "explicitIV")
    iv = _sixteen(sent, f"{where} has an explicitIV that is not base64 of 16 bytes") if sent else None
    return KeyBrought(Purpose(client, content_id, "", kid), key, iv)


def _sixteen(text: str, fault: str) -> bytes:
    try:
        value = b64decode("".join(text.split()), validate=True)
    except (NotBase64, ValueError):
        value = b""
    if len(value) != 16:
        raise UnfitDocument(fault) from None
    return value
