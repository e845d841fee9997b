"""The parser of CPIX requests: the requested keys and systems, and the tree that becomes the response.

docs/reference/api/key-provider.md#request. Parsing is strict where an error would make media unplayable or reveal a key; other
parts are passed on unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lxml import etree

from api.speke.cpix.contract import rules_of
from api.speke.cpix.document import V1, Faults, KeyNode, SystemNode, content_id_of, version_of
from api.speke.cpix.elements import CPIX, parse_document
from api.speke.cpix.encryption import Recipient, recipients_of
from api.speke.cpix.errors import CpixFault, SpekeError
from api.speke.cpix.keys import RequestedKey, key_nodes, requested_keys
from api.speke.cpix.systems import check_schemes, system_nodes
from domain.drm.systems import DrmSystem


@dataclass(frozen=True, slots=True)
class Nodes:
    """The elements to fill in. A rule is paired with the index of its key."""

    tree: etree._ElementTree
    keys: Sequence[KeyNode]
    systems: Sequence[SystemNode]
    rules: Sequence[tuple[etree._Element, int]]
    recipients: Sequence[Recipient]


@dataclass(frozen=True, slots=True)
class CpixRequest:
    """A CPIX request. `version` is "1", "2.0" or "2.1". `keys` are in the order of the document."""

    version: str
    content_id: str
    keys: Sequence[RequestedKey]
    nodes: Nodes = field(repr=False)

    @property
    def encrypted(self) -> bool:
        return bool(self.nodes.recipients)

    def systems_of(self, key: int) -> Sequence[DrmSystem]:
        """Return the DRM systems that the key at this index is requested for."""
        return [node.system for node in self.nodes.systems if node.key == key]


def read(body: bytes, *, speke_version: str | None = None) -> CpixRequest:
    """Parse a request. `speke_version` is the header X-Speke-Version, if there is one. Raise the first `SpekeError` of the
    document."""
    faults = Faults()
    request = _parsed_request(body, speke_version, faults=faults)
    if request is None or faults.seen:
        raise faults.seen[0]
    return request


def dry_run(body: bytes) -> list[str]:
    """Return all errors of a document, one sentence each; empty if the key provider would accept it."""
    faults = Faults()
    try:
        _parsed_request(body, None, faults=faults)
    except SpekeError as error:
        return [error.sentence]
    return [error.sentence for error in faults.seen]


def _parsed_request(body: bytes, header: str | None, *, faults: Faults) -> CpixRequest | None:
    tree = parse_document(body)
    root = tree.getroot()
    if root.tag != f"{{{CPIX}}}CPIX":
        faults.add(CpixFault.NOT_CPIX, root)
        return None
    version = version_of(root, header, faults=faults)
    content_id = content_id_of(root, version, faults=faults)
    recipients = recipients_of(root, faults=faults)
    key_places = key_nodes(root, version, faults=faults)
    keys = requested_keys(root, key_places, version, faults=faults)
    systems = system_nodes(root, key_places, version, faults=faults)
    check_schemes(systems, keys, version, faults=faults)
    rules = rules_of(root, key_places, version, faults=faults)
    return CpixRequest(version, content_id, keys, Nodes(tree, key_places, systems, rules, recipients))


def version_headers(version: str, agent: str) -> Sequence[tuple[str, str]]:
    """Return the headers that name the product and the SPEKE version."""
    if version == V1:
        return [("speke-user-agent", agent)]
    return [("x-speke-user-agent", agent), ("x-speke-version", version)]
