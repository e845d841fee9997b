"""Widevine: WidevinePsshData, a protocol buffer: widevine_pssh_data.proto of Shaka Packager.

Four of its fields are written, in ascending order as protocol buffer libraries do, so that the boxes equal theirs byte by byte. The
protection scheme is always written, because a player takes its absence for cenc.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from domain.drm import pssh
from domain.drm.settings import DrmSettings
from domain.drm.systems import DrmSystem, Scheme

_KEY_ID: Final = 2
_PROVIDER: Final = 3
_CONTENT_ID: Final = 4
_PROTECTION_SCHEME: Final = 9
_VARINT: Final = 0
_LENGTH_DELIMITED: Final = 2


def box(kids: Sequence[UUID], scheme: Scheme, *, settings: DrmSettings, content_id: str) -> bytes:
    """Return the complete pssh box."""
    return pssh.box(DrmSystem.WIDEVINE.system_id, payload(kids, scheme, settings=settings, content_id=content_id))


def payload(kids: Sequence[UUID], scheme: Scheme, *, settings: DrmSettings, content_id: str) -> bytes:
    fields = [_delimited(_KEY_ID, kid.bytes) for kid in kids]
    if settings.widevine_provider is not None:
        fields.append(_delimited(_PROVIDER, settings.widevine_provider.encode()))
    if settings.content_id_in_pssh:
        fields.append(_delimited(_CONTENT_ID, content_id.encode()))
    return b"".join(fields) + scheme_field(scheme)


def scheme_field(scheme: Scheme) -> bytes:
    """Return the four characters of the scheme as a big-endian number."""
    return _tag(_PROTECTION_SCHEME, _VARINT) + _varint(int.from_bytes(scheme.encode()))


def hls_uri(box: bytes) -> str:
    """Return the URI of a box for EXT-X-KEY: "Widevine DRM HLS", section "EXT-X-KEY"."""
    return f"data:text/plain;base64,{b64encode(box).decode()}"


def _delimited(number: int, value: bytes) -> bytes:
    return _tag(number, _LENGTH_DELIMITED) + _varint(len(value)) + value


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    """Encode seven bits at a time, the lowest first; the eighth bit says that more follow."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
