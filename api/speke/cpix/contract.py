"""The encryption contract of SPEKE v2, which assigns keys to tracks: docs/reference/api/key-provider.md#usage-rules.

A contradictory contract would let a packager encrypt a track with a key that no licence allows for it. The bounds in filters are
not compared, because presets and packagers differ in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from lxml import etree

from api.speke.cpix.document import V1, Faults, KeyNode, list_members
from api.speke.cpix.elements import (
    AUDIO_FILTER,
    KEY_PERIOD_FILTER,
    USAGE_RULE,
    USAGE_RULE_LIST,
    VIDEO_FILTER,
    attribute,
    children,
)
from api.speke.cpix.errors import CpixFault
from api.speke.cpix.systems import key_index

_MOST_RULES: Final = 1000
_ALL: Final = "ALL"
_TRACKS: Final = {
    **dict.fromkeys(("VIDEO", "SD", "HD", "HD1", "HD2", "UHD", "UHD1", "UHD2"), VIDEO_FILTER),
    **dict.fromkeys(
        ("AUDIO", "STEREO_AUDIO", "MULTICHANNEL_AUDIO", "MULTICHANNEL_AUDIO_3_6", "MULTICHANNEL_AUDIO_7"),
        AUDIO_FILTER,
    ),
}
_BOUNDS: Final = {VIDEO_FILTER: (("minPixels", "maxPixels"),), AUDIO_FILTER: (("minChannels", "maxChannels"),)}


def rules_of(
    root: etree._Element, keys: Sequence[KeyNode], version: str, *, faults: Faults
) -> Sequence[tuple[etree._Element, int]]:
    """Return the usage rules with the indexes of their keys. In v1 they only assign keys to periods."""
    rules = list_members(root, USAGE_RULE_LIST, USAGE_RULE, most=_MOST_RULES, faults=faults)
    if version != V1:
        _check_contract(rules, keys, faults=faults)
        return []
    keyed = [(rule, key_index(rule, keys, place, faults=faults)) for place, rule in enumerate(rules)]
    return [(rule, key) for rule, key in keyed if key is not None]


def _check_contract(rules: Sequence[etree._Element], keys: Sequence[KeyNode], *, faults: Faults) -> None:
    if not any(_filters(rule) for rule in rules):
        faults.add(CpixFault.MISSING_CONTRACT)
        return
    named = Counter(attribute(rule, "kid").lower() for rule in rules)
    key_ids = {str(node.kid) for node in keys}
    for kid in key_ids - named.keys():
        faults.add(CpixFault.MALFORMED_CONTRACT, why=f"no ContentKeyUsageRule for KID {kid}")
    for node in keys:
        if named[str(node.kid)] > 1:
            faults.add(CpixFault.MALFORMED_CONTRACT, node.element, why=f"more than one ContentKeyUsageRule for KID {node.kid}")
    types = Counter((_periods(rule), attribute(rule, "intendedTrackType")) for rule in rules)
    per_period = Counter(_periods(rule) for rule in rules)
    for rule in rules:
        of_type = types[_periods(rule), attribute(rule, "intendedTrackType")]
        for why in _wrong_with(rule, key_ids, shared=of_type > 1, alone=per_period[_periods(rule)] == 1):
            faults.add(CpixFault.MALFORMED_CONTRACT, rule, why=why)


def _wrong_with(rule: etree._Element, key_ids: set[str], *, shared: bool, alone: bool) -> list[str]:
    kind = attribute(rule, "intendedTrackType")
    faults = []
    if attribute(rule, "kid").lower() not in key_ids:
        faults.append("a ContentKeyUsageRule@kid names no ContentKey")
    if not kind:
        faults.append("missing ContentKeyUsageRule@intendedTrackType")
    elif shared:
        faults.append("more than one ContentKeyUsageRule has the same intendedTrackType")
    if kind == _ALL and not alone:
        faults.append("intendedTrackType ALL is combined with other types")
    filters = _filters(rule)
    if not filters:
        faults.append("a ContentKeyUsageRule has neither VideoFilter nor AudioFilter")
    elif not _fits(kind, {str(filter_.tag) for filter_ in filters}):
        faults.append("a ContentKeyUsageRule has filters that do not fit its intendedTrackType")
    if kind == _ALL and any(filter_.attrib for filter_ in filters):
        faults.append("intendedTrackType ALL has a filter with bounds")
    return faults + [why for filter_ in filters for why in _wrong_bounds(filter_)]


def _fits(kind: str, tags: set[str]) -> bool:
    """Return True if the filters fit the type. An unknown type may have any filters. `A+B` needs one filter if both are of one
    kind, else one of each kind."""
    if kind == _ALL:
        return tags == {VIDEO_FILTER, AUDIO_FILTER}
    expected = {_TRACKS.get(part) for part in kind.split("+")}
    return None in expected or tags == expected


def _wrong_bounds(filter_: etree._Element) -> list[str]:
    faults = []
    for low, high in _BOUNDS[str(filter_.tag)]:
        bounds = [attribute(filter_, name) for name in (low, high) if name in filter_.attrib]
        if not all(bound.isascii() and bound.isdecimal() and len(bound) <= len(str(2**64)) for bound in bounds):
            faults.append(f"{low} and {high} must be whole numbers")
        elif len(bounds) > 1 and int(bounds[0]) > int(bounds[1]):
            faults.append(f"{low} is above {high}")
    return faults


def _filters(rule: etree._Element) -> list[etree._Element]:
    return [child for child in children(rule) if child.tag in _BOUNDS]


def _periods(rule: etree._Element) -> tuple[str, ...]:
    return tuple(sorted(attribute(child, "periodId") for child in children(rule) if child.tag == KEY_PERIOD_FILTER))
