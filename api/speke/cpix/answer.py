"""The CPIX response: the request document, filled in: docs/reference/api/key-provider.md#response.

Requested elements are filled in place. Root, declarations, ids, lists, comments and their order stay the same.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol
from uuid import UUID

from lxml import etree

from api.speke.cpix.document import V1, SystemNode
from api.speke.cpix.elements import (
    DATA,
    HLS_SIGNALING_DATA,
    PLAIN_VALUE,
    SECRET,
    add_bare_child,
    add_child,
    attribute,
    children,
    remove_element,
    replace_text,
    serialize,
)
from api.speke.cpix.encryption import DocumentKeys, deliver, encrypt_key
from api.speke.cpix.request import CpixRequest
from api.speke.cpix.signalling import V1_CHILDREN, V2_CHILDREN, Audience, Signalling
from api.speke.cpix.systems import PLAYLISTS
from domain.drm.settings import DrmSettings
from domain.drm.systems import DrmSystem, KeyMaterial

_IV: Final = "explicitIV"


class DeliveredKey(Protocol):
    """A content key. `iv` is the same in every response, and used if the packager sent none."""

    @property
    def kid(self) -> UUID: ...
    @property
    def key(self) -> bytes: ...
    @property
    def iv(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap in a template: the index of the key to insert, and whether it is written in hexadecimal characters."""

    key: int
    hex_form: bool


@dataclass(frozen=True, slots=True)
class Template:
    """A response without its keys, which are inserted into the gaps between its pieces. It holds no plain key, so it may be
    cached; the same request has the same template."""

    pieces: Sequence[bytes]
    gaps: Sequence[Gap]

    @property
    def complete(self) -> bool:
        """True if there are no gaps: the template holds the keys in encrypted form."""
        return not self.gaps

    def filled(self, keys: Sequence[DeliveredKey]) -> bytes:
        if self.complete:
            return self.pieces[0]
        written = [self.pieces[0]]
        for gap, piece in zip(self.gaps, self.pieces[1:], strict=True):
            written += (b64encode(in_form(keys[gap.key].key, hex_form=gap.hex_form)), piece)
        return b"".join(written)

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))


def in_form(value: bytes, *, hex_form: bool) -> bytes:
    return value.hex().encode() if hex_form else value


def fill(request: CpixRequest, keys: Sequence[DeliveredKey], *, audience: Audience) -> bytes:
    """Return the response. `given` holds the keys in the order of `request.keys`."""
    return template(request, keys, audience=audience).filled(keys)


def template(request: CpixRequest, given: Sequence[DeliveredKey], *, audience: Audience) -> Template:
    """Return the template of a response. It fills the tree of the request, so each request can be used only once. Encrypted keys
    are part of the template."""
    mark = os.urandom(16).hex()  # random, so the document cannot contain it
    root = request.nodes.tree.getroot()
    if request.version != V1:
        root.attrib.pop("id", "")  # superseded by contentId; an `id` fails AWS's verification
    for plain in list(root.iter(PLAIN_VALUE)):
        remove_element(plain)  # a key that the packager sent is never returned
    document_keys = DocumentKeys.random() if request.encrypted else None
    if document_keys is not None:
        for recipient in request.nodes.recipients:
            deliver(recipient, document_keys)
    materials = [KeyMaterial(key.kid, key.key, asked.iv or key.iv) for key, asked in zip(given, request.keys, strict=True)]
    for place, material in enumerate(materials):
        fairplay = audience.settings if DrmSystem.FAIRPLAY in request.systems_of(place) else None
        hex_form = fairplay is not None and fairplay.fairplay_hex_form
        element = request.nodes.keys[place].element
        _fill_key(element, material, shown=f"{mark}-{place}-{int(hex_form)}-", fairplay=fairplay, document_keys=document_keys)
    for node in request.nodes.systems:
        signalling = Signalling(node.system, materials[node.key], request.keys[node.key].scheme, request.content_id, audience)
        _fill_system(node, signalling, request.version)
    for rule, key in request.nodes.rules:
        _name(rule, materials[key].kid)
    first, *others = serialize(request.nodes.tree).split(f"{mark}-".encode())
    numbered = [piece.split(b"-", 2) for piece in others]
    return Template([first, *(text for _, _, text in numbered)], [Gap(int(key), form == b"1") for key, form, _ in numbered])


def _fill_key(
    element: etree._Element, material: KeyMaterial, *, shown: str, fairplay: DrmSettings | None, document_keys: DocumentKeys | None
) -> None:
    """Fill a ContentKey. `shown` is the placeholder for a key in plain text. `fairplay` is the client's settings, for a FairPlay
    key."""
    _name(element, material.kid)
    if fairplay is not None and material.iv is not None and not attribute(element, _IV):
        hex_form = fairplay.fairplay_hex_form and document_keys is None
        element.set(_IV, b64encode(in_form(material.iv, hex_form=hex_form)).decode())
    sent = [child for child in children(element) if child.tag == DATA]
    place = element.index(sent[0]) if sent else len(element)
    for child in sent:
        remove_element(child)
    data = add_child(element, DATA)
    element.insert(place, data)
    secret = add_child(data, SECRET)
    if document_keys is not None:
        encrypt_key(secret, material.key, document_keys)
        return
    add_child(secret, PLAIN_VALUE, text=shown)
    if fairplay is not None and fairplay.fairplay_direct_plain_value:
        add_child(element, PLAIN_VALUE, text=shown)


def _fill_system(node: SystemNode, signalling: Signalling, version: str) -> None:
    _name(node.element, signalling.material.kid)
    if not any(True for _ in children(node.element)):
        _add_children(node, version)
    for child in children(node.element):
        value = signalling.value(str(child.tag), attribute(child, "playlist"))
        if value is not None:
            replace_text(child, value)


def _add_children(node: SystemNode, version: str) -> None:
    if version == V1:
        for tag, bare in V1_CHILDREN[node.system]:
            (add_bare_child if bare else add_child)(node.element, tag)
        return
    for tag in V2_CHILDREN[node.system]:
        add_child(node.element, tag)
    for playlist in PLAYLISTS:
        add_child(node.element, HLS_SIGNALING_DATA).set("playlist", playlist)


def _name(element: etree._Element, kid: UUID) -> None:
    """Set the kid of an element. A kid that was sent keeps its spelling."""
    if not attribute(element, "kid"):
        element.set("kid", str(kid))
