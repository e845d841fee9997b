"""The request document, filled in. Document 1, "CPIX response document"; reference/drm.md, a.2 to a.4 and b "Answer rules".

What was asked for is filled where it stands. Root, declarations, ids, lists, comments and their order stay as they came.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol
from uuid import UUID

from lxml import etree

from api.speke.cpix.dialect import V1
from api.speke.cpix.document import SystemNode
from api.speke.cpix.elements import (
    DATA,
    HLS_SIGNALING_DATA,
    PLAIN_VALUE,
    SECRET,
    added,
    added_bare,
    attribute,
    children,
    dropped,
    written,
)
from api.speke.cpix.encryption import DocumentKeys, deliver, seal
from api.speke.cpix.parsing import printed
from api.speke.cpix.request import CpixRequest
from api.speke.cpix.signalling import V1_CHILDREN, V2_CHILDREN, Audience, Signalling
from api.speke.cpix.systems import PLAYLISTS
from domain.drm.systems import DrmSystem, KeyMaterial

_IV: Final = "explicitIV"


class GivenKey(Protocol):
    """A content key as the store gives it. `iv` is stable, and used where the packager sent none."""

    @property
    def kid(self) -> UUID: ...
    @property
    def key(self) -> bytes: ...
    @property
    def iv(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Template:
    """An answer without its keys, which belong between its pieces, in the order of the document. Holds no key, so it may be kept;
    the same question has the same one."""

    pieces: Sequence[bytes]

    @property
    def complete(self) -> bool:
        """Nothing is missing: the keys are in it, encrypted."""
        return len(self.pieces) == 1

    def filled(self, given: Sequence[GivenKey]) -> bytes:
        if self.complete:
            return self.pieces[0]
        written = [self.pieces[0]]
        for key, piece in zip(given, self.pieces[1:], strict=True):
            written += (b64encode(key.key), piece)
        return b"".join(written)

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))


def fill(request: CpixRequest, given: Sequence[GivenKey], *, audience: Audience) -> bytes:
    """`given` in the order of `request.keys`."""
    return template(request, given, audience=audience).filled(given)


def template(request: CpixRequest, given: Sequence[GivenKey], *, audience: Audience) -> Template:
    """The request's tree becomes the answer: a request is filled once. Keys that are delivered encrypted are in it."""
    mark = os.urandom(16).hex()  # nobody can have sent it
    root = request.nodes.tree.getroot()
    if request.version != V1:
        root.attrib.pop("id", "")  # superseded by contentId; an `id` fails AWS's verification
    for plain in list(root.iter(PLAIN_VALUE)):
        dropped(plain)  # the caller's; never ours to give back
    document_keys = DocumentKeys.random() if request.encrypted else None
    if document_keys is not None:
        for recipient in request.nodes.recipients:
            deliver(recipient, document_keys)
    materials = [KeyMaterial(key.kid, key.key, asked.iv or key.iv) for key, asked in zip(given, request.keys, strict=True)]
    for place, material in enumerate(materials):
        fairplay = DrmSystem.FAIRPLAY in request.systems_of(place)
        element = request.nodes.keys[place].element
        _fill_key(element, material, shown=mark, fairplay=fairplay, document_keys=document_keys)
    for node in request.nodes.systems:
        signalling = Signalling(node.system, materials[node.key], request.keys[node.key].scheme, request.content_id, audience)
        _fill_system(node, signalling, request.version)
    for rule, key in request.nodes.rules:
        _name(rule, materials[key].kid)
    return Template(printed(request.nodes.tree).split(mark.encode()))


def _fill_key(
    element: etree._Element, material: KeyMaterial, *, shown: str, fairplay: bool, document_keys: DocumentKeys | None
) -> None:
    """`shown` stands for the key, where it is given in the clear."""
    _name(element, material.kid)
    if fairplay and material.iv is not None and not attribute(element, _IV):
        element.set(_IV, b64encode(material.iv).decode())
    sent = [child for child in children(element) if child.tag == DATA]
    place = element.index(sent[0]) if sent else len(element)
    for child in sent:
        dropped(child)
    data = added(element, DATA)
    element.insert(place, data)
    secret = added(data, SECRET)
    if document_keys is None:
        added(secret, PLAIN_VALUE, text=shown)
    else:
        seal(secret, material.key, document_keys)


def _fill_system(node: SystemNode, signalling: Signalling, version: str) -> None:
    _name(node.element, signalling.material.kid)
    if not any(True for _ in children(node.element)):
        _add_children(node, version)
    for child in children(node.element):
        value = signalling.value(str(child.tag), attribute(child, "playlist"))
        if value is not None:
            written(child, value)


def _add_children(node: SystemNode, version: str) -> None:
    if version == V1:
        for tag, bare in V1_CHILDREN[node.system]:
            (added_bare if bare else added)(node.element, tag)
        return
    for tag in V2_CHILDREN[node.system]:
        added(node.element, tag)
    for playlist in PLAYLISTS:
        added(node.element, HLS_SIGNALING_DATA).set("playlist", playlist)


def _name(element: etree._Element, kid: UUID) -> None:
    """A kid that was sent stays as it was written."""
    if not attribute(element, "kid"):
        element.set("kid", str(kid))
