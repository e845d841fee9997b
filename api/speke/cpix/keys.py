"""The keys that a document requests: ContentKeyList, and ContentKeyPeriodList for keys that rotate.

docs/reference/api/key-provider.md#key-periods. The kid of a key with an empty kid is computed from its content id and
key period, so its period must be unambiguous.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from lxml import etree

from api.speke.cpix.document import V1, Faults, KeyNode, kid_of, list_members
from api.speke.cpix.elements import (
    CONTENT_KEY,
    CONTENT_KEY_LIST,
    KEY_PERIOD_FILTER,
    PERIOD,
    PERIOD_LIST,
    USAGE_RULE,
    USAGE_RULE_LIST,
    attribute,
    children,
)
from api.speke.cpix.errors import CpixFault
from domain.content_key.aggregate import LONGEST_ID
from domain.drm.systems import Scheme

MOST_KEYS: Final = 200
_MOST_PERIODS: Final = 1000
_IV_BYTES: Final = 16
_HLS_METHODS: Final = {"SAMPLE-AES": Scheme.CBCS, "SAMPLE-AES-CTR": Scheme.CENC}


@dataclass(frozen=True, slots=True)
class RequestedKey:
    """A requested content key.

    `kid` is None if the packager leaves its choice to the key provider; `slot` then distinguishes several such keys of one
    period. `period` is "" without key periods, else the period's index, or its id if it has no index. `iv` is the IV that the
    packager sent.
    """

    kid: UUID | None
    period: str
    slot: str
    scheme: Scheme | None
    iv: bytes | None


def key_nodes(root: etree._Element, version: str, *, faults: Faults) -> Sequence[KeyNode]:
    elements = list_members(root, CONTENT_KEY_LIST, CONTENT_KEY, most=MOST_KEYS, faults=faults)
    if not elements:
        faults.add(CpixFault.MISSING_ELEMENT, root, name="ContentKey in a ContentKeyList")
    nodes = [KeyNode(element, kid_of(element, faults=faults)) for element in elements]
    seen: set[UUID] = set()
    for node in nodes:
        if node.kid is not None and node.kid in seen:
            faults.add(CpixFault.REPEATED_KID, node.element, kid=node.kid)
        if version != V1 and not attribute(node.element, "kid"):
            faults.add(CpixFault.MISSING_ATTRIBUTE, node.element, attribute="ContentKey@kid")
        seen |= {node.kid} if node.kid is not None else set()
    return nodes


def requested_keys(root: etree._Element, nodes: Sequence[KeyNode], version: str, *, faults: Faults) -> Sequence[RequestedKey]:
    """Return each key with its period. Keys without a kid are numbered in each period, so the same document gets the same keys."""
    periods = _periods_of_keys(root, nodes, faults=faults)
    made: Counter[str] = Counter()
    keys = []
    for node, period in zip(nodes, periods, strict=True):
        made[period] += node.kid is None
        slot = str(made[period]) if node.kid is None and made[period] > 1 else ""
        keys.append(RequestedKey(node.kid, period, slot, _scheme_of(node, version, faults=faults), _iv_of(node, faults=faults)))
    if version != V1 and len({key.scheme for key in keys if key.scheme is not None}) > 1:
        faults.add(CpixFault.MIXED_SCHEMES, nodes[0].element)
    return keys


def _scheme_of(node: KeyNode, version: str, *, faults: Faults) -> Scheme | None:
    sent = attribute(node.element, "commonEncryptionScheme")
    kid = node.kid or ""
    if not sent:
        if version != V1:
            faults.add(CpixFault.MISSING_SCHEME, node.element, kid=kid)
        return None
    scheme = next((scheme for scheme in Scheme if scheme == sent), None)
    if scheme is None and version == "2.1":
        scheme = _HLS_METHODS.get(sent)
    if scheme is None:
        faults.add(CpixFault.UNKNOWN_SCHEME, node.element, kid=kid)
    return scheme


def _iv_of(node: KeyNode, *, faults: Faults) -> bytes | None:
    sent = attribute(node.element, "explicitIV")
    if not sent:
        return None
    try:
        iv = b64decode(sent, validate=True)
    except (NotBase64, ValueError):
        iv = b""
    if len(iv) != _IV_BYTES:
        faults.add(CpixFault.BAD_IV, node.element)
        return None
    return iv


def _periods_of_keys(root: etree._Element, nodes: Sequence[KeyNode], *, faults: Faults) -> Sequence[str]:
    """Return the period of each key: from its usage rule, or the only period, or the period at its index if there are as many
    periods as keys."""
    periods = _periods(root, faults=faults)
    if len(periods) <= 1:
        return [next(iter(periods.values()), "")] * len(nodes)
    rules = list_members(root, USAGE_RULE_LIST, USAGE_RULE, most=_MOST_PERIODS, faults=Faults())
    by_kid = {kid_of(rule, faults=Faults()): _periods_of_rule(rule, periods) for rule in rules}
    result = []
    for place, node in enumerate(nodes):
        named = by_kid.get(node.kid, []) if node.kid is not None else _named_in_place(place, rules, nodes, periods)
        if len(named) != 1 and node.kid is None:
            faults.add(CpixFault.UNCLEAR_PERIOD, node.element)
        result.append(named[0] if named else "")
    return result


def _named_in_place(
    place: int, rules: Sequence[etree._Element], nodes: Sequence[KeyNode], periods: dict[str, str]
) -> Sequence[str]:
    if len(rules) == len(nodes):
        return _periods_of_rule(rules[place], periods)
    return [list(periods.values())[place]] if len(periods) == len(nodes) else []


def _periods_of_rule(rule: etree._Element, periods: dict[str, str]) -> list[str]:
    sent = [attribute(child, "periodId") for child in children(rule) if child.tag == KEY_PERIOD_FILTER]
    return [periods[name] for name in sent if name in periods]


def _periods(root: etree._Element, *, faults: Faults) -> dict[str, str]:
    """Return the index of each period by its id. The index identifies a period, because ids can differ in each request."""
    indexes: dict[str, str] = {}
    for period in list_members(root, PERIOD_LIST, PERIOD, most=_MOST_PERIODS, faults=faults):
        name, index = attribute(period, "id"), attribute(period, "index")
        if not (name or index):
            faults.add(CpixFault.MISSING_ATTRIBUTE, period, attribute="ContentKeyPeriod@index")
        elif index and not (index.isascii() and index.isdecimal() and len(index) <= len(str(2**64))):
            faults.add(CpixFault.BAD_VALUE, period, attribute="ContentKeyPeriod@index", expected="a whole number")
        elif len(name) > LONGEST_ID:
            faults.add(CpixFault.BAD_VALUE, period, attribute="ContentKeyPeriod@id", expected=f"at most {LONGEST_ID} characters")
        else:
            indexes[name or index] = str(int(index)) if index else name
    return indexes
