"""The content of the children of a DRMSystem element: docs/reference/api/key-provider.md#systems.

A child that a system does not use stays empty, as with the reference server of SPEKE.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from api.speke.cpix.elements import (
    CONTENT_PROTECTION_DATA,
    HLS_SIGNALING_DATA,
    KEY_FORMAT,
    KEY_FORMAT_VERSIONS,
    PROTECTION_HEADER,
    PSSH,
    SMOOTH_STREAMING_DATA,
    URI_EXT_X_KEY,
)
from domain.drm import content_protection, fairplay, hls, playready, widevine
from domain.drm.settings import DrmSettings
from domain.drm.systems import DrmSystem, KeyMaterial, Scheme

# The usual children in SPEKE v1, and a flag that is True if they are written without a prefix.
V1_CHILDREN: Final = {
    DrmSystem.WIDEVINE: ((PSSH, True),),
    DrmSystem.PLAYREADY: ((PROTECTION_HEADER, False), (PSSH, False)),
    DrmSystem.FAIRPLAY: ((URI_EXT_X_KEY, True), (KEY_FORMAT, True), (KEY_FORMAT_VERSIONS, True)),
}
V2_CHILDREN: Final = {
    DrmSystem.WIDEVINE: (PSSH, CONTENT_PROTECTION_DATA),
    DrmSystem.PLAYREADY: (PSSH, CONTENT_PROTECTION_DATA),
    DrmSystem.FAIRPLAY: (),
}


@dataclass(frozen=True, slots=True)
class Audience:
    """The receiver of a response: the client, its settings, and the server's host, which a FairPlay URI may contain."""

    client: str
    host: str
    settings: DrmSettings


@dataclass(frozen=True)
class Signalling:
    """The data of one system for one key. A key of v1 has no scheme; the traditional scheme of the system is used then."""

    system: DrmSystem
    material: KeyMaterial
    stated: Scheme | None
    content_id: str
    audience: Audience

    def value(self, tag: str, playlist: str) -> str | None:
        """Return the text of a child in base64; None for a child that the system does not use."""
        content = self._content(tag, playlist)
        return None if content is None else b64encode(content).decode()

    def _content(self, tag: str, playlist: str) -> bytes | None:
        if tag == HLS_SIGNALING_DATA:
            return self._playlist_line(playlist).encode()
        if tag == URI_EXT_X_KEY:
            return self._uri.encode()
        if tag == KEY_FORMAT:
            return hls.KEY_FORMATS[self.system].encode()
        if tag == KEY_FORMAT_VERSIONS:
            return self._versions.encode()
        if tag in (PROTECTION_HEADER, SMOOTH_STREAMING_DATA):
            return self._playready_object
        box = self._box
        if tag == CONTENT_PROTECTION_DATA and box is not None:
            return content_protection.xml(box, playready_object=self._playready_object)
        return box if tag == PSSH else None

    @property
    def scheme(self) -> Scheme:
        return self.stated or (Scheme.CBCS if self.system is DrmSystem.FAIRPLAY else Scheme.CENC)

    @cached_property
    def _playready_object(self) -> bytes | None:
        if self.system is not DrmSystem.PLAYREADY:
            return None
        header = playready.header(self.material, self.scheme, la_url=self.audience.settings.playready_la_url)
        return playready.object_of(header)

    @cached_property
    def _box(self) -> bytes | None:
        if self._playready_object is not None:
            return playready.box(self._playready_object)
        if self.system is DrmSystem.WIDEVINE:
            return widevine.box([self.material.kid], self.scheme, settings=self.audience.settings, content_id=self.content_id)
        return None

    @cached_property
    def _uri(self) -> str:
        if self._playready_object is not None:
            return playready.hls_uri(self._playready_object)
        if self._box is not None:
            return widevine.hls_uri(self._box)
        settings = self.audience.settings
        return fairplay.uri(
            self.material, settings, client=self.audience.client, content_id=self.content_id, host=self.audience.host
        )

    @property
    def _versions(self) -> str:
        return self.audience.settings.fairplay_key_format_versions if self.system is DrmSystem.FAIRPLAY else "1"

    def _playlist_line(self, playlist: str) -> str:
        line = hls.session_key_line if playlist == "master" else hls.key_line
        return line(self.system, self.scheme, uri=self._uri, kid=self.material.kid, versions=self._versions)
