"""What a DASH manifest says within ContentProtection: ISO/IEC 23001-7, section 11.2; Microsoft, "DASH Content Protection using
PlayReady", for `pro`. reference/drm.md, a.2: each element states its own namespace, so that it can stand anywhere.
"""

from __future__ import annotations

from base64 import b64encode


def xml(box: bytes, *, playready_object: bytes | None = None) -> bytes:
    """The pssh element; for PlayReady also the object by itself, which older players look for."""
    said = b'<pssh xmlns="urn:mpeg:cenc:2013">' + b64encode(box) + b"</pssh>"
    if playready_object is None:
        return said
    return said + b'<pro xmlns="urn:microsoft:playready">' + b64encode(playready_object) + b"</pro>"
