"""Key lines of HLS playlists: RFC 8216, sections 4.3.2.4 (EXT-X-KEY, media) and 4.3.4.5 (EXT-X-SESSION-KEY, master).

Attributes and their order are those of Shaka Packager. There is no IV: the sample groups or the FairPlay licence carry it.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from domain.drm.fairplay import KEY_FORMAT
from domain.drm.systems import DrmSystem, Scheme
from domain.kernel.errors import Refused

KEY_FORMATS: Final = {
    DrmSystem.WIDEVINE: f"urn:uuid:{DrmSystem.WIDEVINE.system_id}",
    DrmSystem.PLAYREADY: "com.microsoft.playready",
    DrmSystem.FAIRPLAY: KEY_FORMAT,
}
_METHODS: Final = {Scheme.CBCS: "SAMPLE-AES", Scheme.CENC: "SAMPLE-AES-CTR"}


def key_line(system: DrmSystem, scheme: Scheme, *, uri: str, kid: UUID, versions: str = "1") -> str:
    return f"#EXT-X-KEY:{_attributes(system, scheme, uri, kid, versions)}"


def session_key_line(system: DrmSystem, scheme: Scheme, *, uri: str, kid: UUID, versions: str = "1") -> str:
    """Return an EXT-X-SESSION-KEY. Its attributes equal those of the media playlists, so that a player recognises the key."""
    return f"#EXT-X-SESSION-KEY:{_attributes(system, scheme, uri, kid, versions)}"


def _attributes(system: DrmSystem, scheme: Scheme, uri: str, kid: UUID, versions: str) -> str:
    method = _METHODS.get(scheme)
    if method is None:
        raise Refused(f"HLS has no method for the scheme {scheme}")
    named = f"KEYID=0x{kid.hex}," if system is DrmSystem.WIDEVINE else ""
    return f'METHOD={method},URI="{uri}",{named}KEYFORMAT="{KEY_FORMATS[system]}",KEYFORMATVERSIONS="{versions}"'
