"""Parsing of untrusted CPIX documents: docs/reference/api/key-provider.md#request."""

from __future__ import annotations

from itertools import chain, islice
from typing import Final

from lxml import etree

from api.speke.cpix.errors import Fault, SpekeError
from domain.kernel.untrusted_xml import HasDoctype, NotXml, parsed_xml

LARGEST_BODY: Final = 256 * 1024
# libxml2 prints each sibling of the root by walking over all before it; tens of thousands would take minutes.
_MOST_BESIDE_ROOT: Final = 100


def parse_document(body: bytes) -> etree._ElementTree:
    if not body.strip():
        raise SpekeError(Fault.EMPTY)
    if len(body) > LARGEST_BODY:
        raise SpekeError(Fault.TOO_LARGE)
    try:
        tree = parsed_xml(body)
    except NotXml as fault:
        raise SpekeError(Fault.NOT_XML, at=fault.line, column=fault.column) from None
    except HasDoctype:
        raise SpekeError(Fault.DOCTYPE) from None
    root = tree.getroot()
    siblings = chain(root.itersiblings(preceding=True), root.itersiblings())
    if next(islice(siblings, _MOST_BESIDE_ROOT, None), None) is not None:
        raise SpekeError(Fault.TOO_MANY, most=_MOST_BESIDE_ROOT, name="comments and instructions outside the root")
    return tree


def serialize(tree: etree._ElementTree) -> bytes:
    """Return the document in UTF-8, with the comments and instructions outside the root."""
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + etree.tostring(tree, encoding="UTF-8", xml_declaration=False)
