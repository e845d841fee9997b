"""Names of CPIX elements, and small changes of the tree: docs/reference/api/key-provider.md#namespaces.

Elements are matched by namespace and local name; the prefixes are the packager's.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Final, cast

from lxml import etree

from api.speke.cpix.errors import CpixFault, SpekeError
from domain.kernel.untrusted_xml import HasDoctype, NotXml, parsed_xml

LARGEST_BODY: Final = 256 * 1024
# libxml2 prints each sibling of the root by walking over all before it; tens of thousands would take minutes.
_MOST_BESIDE_ROOT: Final = 100


def parse_document(body: bytes) -> etree._ElementTree:
    if not body.strip():
        raise SpekeError(CpixFault.EMPTY)
    if len(body) > LARGEST_BODY:
        raise SpekeError(CpixFault.TOO_LARGE)
    try:
        tree = parsed_xml(body)
    except NotXml as fault:
        raise SpekeError(CpixFault.NOT_XML, at=fault.line, column=fault.column) from None
    except HasDoctype:
        raise SpekeError(CpixFault.DOCTYPE) from None
    root = tree.getroot()
    siblings = chain(root.itersiblings(preceding=True), root.itersiblings())
    if next(islice(siblings, _MOST_BESIDE_ROOT, None), None) is not None:
        raise SpekeError(CpixFault.TOO_MANY, most=_MOST_BESIDE_ROOT, name="comments and instructions outside the root")
    return tree


def serialize(tree: etree._ElementTree) -> bytes:
    """Return the document in UTF-8, with the comments and instructions outside the root."""
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + etree.tostring(tree, encoding="UTF-8", xml_declaration=False)


CPIX: Final = "urn:dashif:org:cpix"
PSKC: Final = "urn:ietf:params:xml:ns:keyprov:pskc"
SPEKE: Final = "urn:aws:amazon:com:speke"
DS: Final = "http://www.w3.org/2000/09/xmldsig#"
ENC: Final = "http://www.w3.org/2001/04/xmlenc#"

_PREFIXES: Final = {CPIX: "cpix", PSKC: "pskc", SPEKE: "speke", ENC: "enc"}

CONTENT_KEY_LIST: Final = f"{{{CPIX}}}ContentKeyList"
CONTENT_KEY: Final = f"{{{CPIX}}}ContentKey"
DRM_SYSTEM_LIST: Final = f"{{{CPIX}}}DRMSystemList"
DRM_SYSTEM: Final = f"{{{CPIX}}}DRMSystem"
PERIOD_LIST: Final = f"{{{CPIX}}}ContentKeyPeriodList"
PERIOD: Final = f"{{{CPIX}}}ContentKeyPeriod"
USAGE_RULE_LIST: Final = f"{{{CPIX}}}ContentKeyUsageRuleList"
USAGE_RULE: Final = f"{{{CPIX}}}ContentKeyUsageRule"
KEY_PERIOD_FILTER: Final = f"{{{CPIX}}}KeyPeriodFilter"
VIDEO_FILTER: Final = f"{{{CPIX}}}VideoFilter"
AUDIO_FILTER: Final = f"{{{CPIX}}}AudioFilter"
DELIVERY_DATA_LIST: Final = f"{{{CPIX}}}DeliveryDataList"
DELIVERY_DATA: Final = f"{{{CPIX}}}DeliveryData"
DELIVERY_KEY: Final = f"{{{CPIX}}}DeliveryKey"
DOCUMENT_KEY: Final = f"{{{CPIX}}}DocumentKey"
MAC_METHOD: Final = f"{{{CPIX}}}MACMethod"
X509_CERTIFICATE: Final = f"{{{DS}}}X509Certificate"
DATA: Final = f"{{{CPIX}}}Data"
SECRET: Final = f"{{{PSKC}}}Secret"
PLAIN_VALUE: Final = f"{{{PSKC}}}PlainValue"

PSSH: Final = f"{{{CPIX}}}PSSH"
CONTENT_PROTECTION_DATA: Final = f"{{{CPIX}}}ContentProtectionData"
URI_EXT_X_KEY: Final = f"{{{CPIX}}}URIExtXKey"
HLS_SIGNALING_DATA: Final = f"{{{CPIX}}}HLSSignalingData"
SMOOTH_STREAMING_DATA: Final = f"{{{CPIX}}}SmoothStreamingProtectionHeaderData"
PROTECTION_HEADER: Final = f"{{{SPEKE}}}ProtectionHeader"
KEY_FORMAT: Final = f"{{{SPEKE}}}KeyFormat"
KEY_FORMAT_VERSIONS: Final = f"{{{SPEKE}}}KeyFormatVersions"


def local_name(tag: str) -> str:
    return tag.rpartition("}")[2]


def namespace(tag: str) -> str:
    return tag[1:].partition("}")[0]


def children(element: etree._Element) -> Iterator[etree._Element]:
    """Yield the child elements, without comments and processing instructions."""
    return element.iterchildren(etree.Element)


def attribute(element: etree._Element, name: str) -> str:
    """Return the value of an attribute, stripped; empty if the attribute is absent."""
    return str(element.get(name, "")).strip()


def add_child(parent: etree._Element, tag: str, *, text: str | None = None) -> etree._Element:
    """Add a child, with a prefix that the document declares, or with the usual prefix declared on the child."""
    home = namespace(tag)
    declared = home in parent.nsmap.values()
    child = etree.SubElement(parent, tag, nsmap=None if declared else {_PREFIXES[home]: home})
    child.text = text
    return child


def add_bare_child(parent: etree._Element, tag: str) -> etree._Element:
    """Add a child without a prefix, in its namespace, because some packagers expect these elements in that form."""
    return etree.SubElement(parent, tag, nsmap=cast("dict[str, str]", {None: namespace(tag)}))


def remove_element(element: etree._Element) -> None:
    """Remove an element but not the text after it, which lxml would remove too."""
    parent = element.getparent()
    if parent is None:
        return
    before = element.getprevious()
    if before is None:
        parent.text = (parent.text or "") + (element.tail or "") or None
    else:
        before.tail = (before.tail or "") + (element.tail or "") or None
    parent.remove(element)


def replace_text(element: etree._Element, text: str) -> None:
    """Replace the content of an element; its attributes stay."""
    for child in list(element):
        element.remove(child)
    element.text = text
