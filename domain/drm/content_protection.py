"""The content of ContentProtection in a DASH manifest: ISO/IEC 23001-7, section 11.2; for `pro` Microsoft, "DASH Content
Protection using PlayReady". Each element declares its own namespace, so it can be placed anywhere.
"""

from __future__ import annotations

from base64 import b64encode


def xml(box: bytes, *, playready_object: bytes | None = None) -> bytes:
    """Return the pssh element; for PlayReady also the PlayReady Object, which older players need."""
    pssh = b'<pssh xmlns="urn:mpeg:cenc:2013">' + b64encode(box) + b"</pssh>"
    if playready_object is None:
        return pssh
    return pssh + b'<pro xmlns="urn:microsoft:playready">' + b64encode(playready_object) + b"</pro>"
