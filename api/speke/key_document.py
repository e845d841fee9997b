"""CPIX documents with keys in plain text, for `medialedger keys import` and `export`: docs/how-to/give-keys-to-a-packager.md.

Error messages never repeat the content of such a document.
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
    parse_document,
    serialize,
)
from domain.content_key.aggregate import Purpose
from domain.content_key.handlers import ImportedKey, PlainKey


class InvalidKeyDocument(Exception):
    """Raised for a key document that cannot be imported. The message is one sentence for an operator."""


def keys_of(document: bytes, *, client: str) -> list[ImportedKey]:
    """Return all keys of the document. Raise `InvalidKeyDocument` for an invalid key, and `SpekeError` for a body that is not
    XML."""
    root = parse_document(document).getroot()
    if root.tag != f"{{{CPIX}}}CPIX":
        raise InvalidKeyDocument("the root element is not CPIX in the namespace urn:dashif:org:cpix")
    content_id = attribute(root, "contentId") or attribute(root, "id")
    if not content_id:
        raise InvalidKeyDocument("the document has no content id: CPIX has neither contentId nor id")
    lists = [child for child in children(root) if child.tag == CONTENT_KEY_LIST]
    elements = [key for key_list in lists for key in children(key_list) if key.tag == CONTENT_KEY]
    if not elements:
        raise InvalidKeyDocument("the document has no ContentKey")
    return [_imported(element, content_id=content_id, client=client) for element in elements]


def document_of(content_id: str, keys: Sequence[PlainKey]) -> bytes:
    """Return a document that `keys_of` can read."""
    root = etree.Element(f"{{{CPIX}}}CPIX", {"contentId": content_id, "version": "2.3"}, nsmap={"cpix": CPIX, "pskc": PSKC})
    key_list = etree.SubElement(root, CONTENT_KEY_LIST)
    for key in keys:
        element = etree.SubElement(key_list, CONTENT_KEY, {"kid": str(key.kid), "explicitIV": b64encode(key.iv).decode()})
        secret = etree.SubElement(etree.SubElement(element, DATA), SECRET)
        etree.SubElement(secret, PLAIN_VALUE).text = b64encode(key.key).decode()
    etree.indent(root)
    return serialize(root.getroottree())


def _imported(element: etree._Element, *, content_id: str, client: str) -> ImportedKey:
    where = f"the ContentKey at line {element.sourceline}"
    kid = uuid_of(attribute(element, "kid"))
    if kid is None:
        raise InvalidKeyDocument(f"{where} has no kid that is a UUID")
    plain = element.find(f"{DATA}/{SECRET}/{PLAIN_VALUE}")
    if plain is None:
        raise InvalidKeyDocument(f"{where} has no Data/Secret/PlainValue: only keys in plain text can be imported")
    key = _sixteen_bytes(plain.text or "", f"{where} has a PlainValue that is not base64 of 16 bytes")
    sent = attribute(element, "explicitIV")
    iv = _sixteen_bytes(sent, f"{where} has an explicitIV that is not base64 of 16 bytes") if sent else None
    return ImportedKey(Purpose(client, content_id, "", kid), key, iv)


def _sixteen_bytes(text: str, message: str) -> bytes:
    try:
        value = b64decode("".join(text.split()), validate=True)
    except (NotBase64, ValueError):
        value = b""
    if len(value) != 16:
        raise InvalidKeyDocument(message) from None
    return value
