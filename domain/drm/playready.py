"""PlayReady: the PlayReady Object and its header: Microsoft, "PlayReady Header Specification" and "PlayReady Object".

Counter mode uses header 4.0, which the oldest players understand; block chaining needs 4.3. A header names one key. In PlayReady
only, the kid is a GUID with its first three parts in little-endian order.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from html import escape
from typing import Final
from uuid import UUID

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from domain.drm import pssh
from domain.drm.systems import DrmSystem, KeyMaterial, Scheme

_NAMESPACE: Final = "http://schemas.microsoft.com/DRM/2007/03/PlayReadyHeader"
_OBJECT: Final = struct.Struct("<IHHH")  # length of all, number of records, type and length of the only one
_HEADER_RECORD: Final = 1
_CHECKSUM_BYTES: Final = 8


def header(material: KeyMaterial, scheme: Scheme, *, la_url: str | None) -> str:
    """Return the WRMHEADER: canonical XML, tags closed explicitly, attributes in alphabetical order after the namespace."""
    version, described = _described_4_0(material) if scheme.counts else _described_4_3(material)
    address = f"<LA_URL>{escape(la_url, quote=False)}</LA_URL>" if la_url is not None else ""
    return f'<WRMHEADER xmlns="{_NAMESPACE}" version="{version}"><DATA>{described}{address}</DATA></WRMHEADER>'


def object_of(header: str) -> bytes:
    """Return the PlayReady Object: one record, which is the header in UTF-16LE."""
    record = header.encode("utf-16-le")
    return _OBJECT.pack(_OBJECT.size + len(record), 1, _HEADER_RECORD, len(record)) + record


def box(playready_object: bytes) -> bytes:
    """Return the complete pssh box."""
    return pssh.box(DrmSystem.PLAYREADY.system_id, playready_object)


def hls_uri(playready_object: bytes) -> str:
    return f"data:text/plain;charset=UTF-16;base64,{b64encode(playready_object).decode()}"


def kid_text(kid: UUID) -> str:
    return b64encode(kid.bytes_le).decode()


def checksum(material: KeyMaterial) -> str:
    """Return the kid encrypted with the key. A player uses it to check that it has the right key."""
    first_block = Cipher(AES(material.key), CBC(bytes(16))).encryptor()  # for one block, CBC with a zero IV equals the required ECB
    return b64encode(first_block.update(material.kid.bytes_le)[:_CHECKSUM_BYTES]).decode()


def _described_4_0(material: KeyMaterial) -> tuple[str, str]:
    protection = "<PROTECTINFO><KEYLEN>16</KEYLEN><ALGID>AESCTR</ALGID></PROTECTINFO>"
    return "4.0.0.0", f"{protection}<KID>{kid_text(material.kid)}</KID><CHECKSUM>{checksum(material)}</CHECKSUM>"


def _described_4_3(material: KeyMaterial) -> tuple[str, str]:
    """Describe the key without a checksum, which must be absent for AESCBC."""
    kid = f'<KID ALGID="AESCBC" VALUE="{kid_text(material.kid)}"></KID>'
    return "4.3.0.0", f"<PROTECTINFO><KIDS>{kid}</KIDS></PROTECTINFO>"
