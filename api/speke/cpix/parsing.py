"""Safe parsing of XML from outside: docs/reference/api/key-provider.md#request.

Entities are not resolved, DTDs are not loaded, nothing is fetched. A document type is refused after parsing: a search of the bytes
would miss it in UTF-16.
"""

from __future__ import annotations

from typing import Final

from lxml import etree

from api.speke.cpix.errors import Fault, SpekeError

LARGEST_BODY: Final = 256 * 1024


def parsed(body: bytes) -> etree._ElementTree:
    if not body.strip():
        raise SpekeError(Fault.EMPTY)
    if len(body) > LARGEST_BODY:
        raise SpekeError(Fault.TOO_LARGE)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, huge_tree=False)
    try:
        tree = etree.fromstring(body, parser).getroottree()
    except etree.XMLSyntaxError as error:
        line, column = error.position
        # The parser's own message holds names and text of the document.
        raise SpekeError(Fault.NOT_XML, at=line, column=column) from None
    if tree.docinfo.internalDTD is not None or tree.docinfo.doctype:
        raise SpekeError(Fault.DOCTYPE)
    return tree


def printed(tree: etree._ElementTree) -> bytes:
    """UTF-8, with the comments and instructions outside the root."""
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + etree.tostring(tree, encoding="UTF-8", xml_declaration=False)
