"""The DRM systems that a document requests, each with its key: docs/reference/api/key-provider.md#systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from lxml import etree

from api.speke.cpix.document import V1, Faults, KeyNode, SystemNode, kid_of, list_members, uuid_of
from api.speke.cpix.elements import DRM_SYSTEM, DRM_SYSTEM_LIST, HLS_SIGNALING_DATA, attribute, children, local_name
from api.speke.cpix.errors import CpixFault
from api.speke.cpix.keys import MOST_KEYS, RequestedKey
from domain.drm.systems import DrmSystem, Scheme, system_of

PLAYLISTS: Final = ("media", "master")
_MOST_SYSTEMS: Final = MOST_KEYS * len(DrmSystem)
_HLS_SCHEMES: Final = frozenset({Scheme.CENC, Scheme.CBCS})
_SCHEMES: Final = {
    DrmSystem.WIDEVINE: frozenset(Scheme),
    DrmSystem.PLAYREADY: frozenset({Scheme.CENC, Scheme.CBCS}),
    DrmSystem.FAIRPLAY: frozenset({Scheme.CBCS}),
}


def system_nodes(root: etree._Element, keys: Sequence[KeyNode], version: str, *, faults: Faults) -> Sequence[SystemNode]:
    elements = list_members(root, DRM_SYSTEM_LIST, DRM_SYSTEM, most=_MOST_SYSTEMS, faults=faults)
    if not elements:
        faults.add(CpixFault.MISSING_ELEMENT, root, name="DRMSystem in a DRMSystemList")
    nodes = []
    unnamed: Counter[UUID] = Counter()
    for element in elements:
        system = _system_of(element, faults=faults)
        if version != V1 and not attribute(element, "kid"):
            faults.add(CpixFault.MISSING_ATTRIBUTE, element, attribute="DRMSystem@kid")
            continue
        place = 0 if system is None else unnamed[system.system_id]
        key = key_index(element, keys, place, faults=faults)
        _check_children(element, faults=faults)
        if system is not None and not attribute(element, "kid"):
            unnamed[system.system_id] += 1
        if system is not None and key is not None:
            nodes.append(SystemNode(element, system, key))
    return nodes


def key_index(element: etree._Element, keys: Sequence[KeyNode], place: int, *, faults: Faults) -> int | None:
    """Return the index of the ContentKey for a DRMSystem or a usage rule. It is selected by kid; without a kid it is the only
    key, or, if several keys have no kid, the key at `place` among them."""
    sent = attribute(element, "kid")
    kid = kid_of(element, faults=faults)
    if kid is not None:
        index = next((at for at, node in enumerate(keys) if node.kid == kid), None)
        if index is None:
            faults.add(CpixFault.UNKNOWN_KID, element, kid=kid, name=local_name(str(element.tag)))
        return index
    if sent or not keys:
        return None
    unnamed = [at for at, node in enumerate(keys) if not attribute(node.element, "kid")] or list(range(len(keys)))
    if len(unnamed) == 1:
        return unnamed[0]
    if len(unnamed) < len(keys) or keys[0].kid is not None or place >= len(unnamed):
        faults.add(CpixFault.UNCLEAR_KEY, element, name=local_name(str(element.tag)))
        return None
    return unnamed[place]


def check_schemes(systems: Sequence[SystemNode], keys: Sequence[RequestedKey], version: str, *, faults: Faults) -> None:
    """Check that each system can decrypt its scheme, because no player could use its data otherwise. HLS has a METHOD for two
    schemes only."""
    for node in systems:
        scheme = keys[node.key].scheme
        if scheme is None:
            continue
        asks = [child.tag for child in children(node.element)]
        hls = HLS_SIGNALING_DATA in asks or (version != V1 and not asks)
        if scheme not in _SCHEMES[node.system] or (hls and scheme not in _HLS_SCHEMES):
            faults.add(CpixFault.SCHEME_OF_SYSTEM, node.element, system_id=node.system.system_id)


def _system_of(element: etree._Element, *, faults: Faults) -> DrmSystem | None:
    sent = attribute(element, "systemId")
    if not sent:
        faults.add(CpixFault.MISSING_ATTRIBUTE, element, attribute="DRMSystem@systemId")
        return None
    system_id = uuid_of(sent)
    if system_id is None:
        faults.add(CpixFault.NOT_A_UUID, element, attribute="DRMSystem@systemId")
        return None
    system = system_of(system_id)
    if system is None:
        faults.add(CpixFault.UNSUPPORTED_SYSTEM, element, system_id=system_id)
    return system


def _check_children(element: etree._Element, *, faults: Faults) -> None:
    """Check that no child is repeated: repeated children would let a small request cause a huge response."""
    seen: set[tuple[str, str]] = set()
    for child in children(element):
        tag = str(child.tag)
        playlist = attribute(child, "playlist") if tag == HLS_SIGNALING_DATA else ""
        if playlist and playlist not in PLAYLISTS:
            faults.add(CpixFault.BAD_VALUE, child, attribute="HLSSignalingData@playlist", expected="media or master")
        if (tag, playlist) in seen:
            name = local_name(tag) if tag == HLS_SIGNALING_DATA else "child of the same name"
            faults.add(CpixFault.REPEATED_ELEMENT, child, name=f"{name} in a DRMSystem")
        seen.add((tag, playlist))
