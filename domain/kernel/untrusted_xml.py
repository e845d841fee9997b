"""Safe parsing of XML from untrusted sources.

Entities are not resolved, DTDs are not loaded, nothing is fetched. A document type is refused after parsing, because a search of
the bytes would miss it in UTF-16.
"""

from __future__ import annotations

from lxml import etree


class NotXml(Exception):
    """Raised when a document cannot be parsed. The parser's own message is left out, because it contains names and text of the
    document."""

    def __init__(self, *, line: int, column: int) -> None:
        super().__init__(f"not XML, at line {line}, column {column}")
        self.line = line
        self.column = column


class HasDoctype(Exception):
    """Raised when a document has a document type, which is refused."""


def parsed_xml(body: bytes) -> etree._ElementTree:
    """Parse a document. Raises `NotXml` or `HasDoctype`."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, huge_tree=False)
    try:
        tree = etree.fromstring(body, parser).getroottree()
    except etree.XMLSyntaxError as error:
        line, column = error.position
        raise NotXml(line=line, column=column) from None
    if tree.docinfo.internalDTD is not None or tree.docinfo.doctype:
        raise HasDoctype
    return tree
