"""DRM settings of a client: docs/reference/api/clients.md#drm-settings. They are not secret."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from domain.kernel.errors import FieldError, Malformed
from domain.kernel.urls import url_fault

PLACEHOLDERS: Final = ("host", "client", "content_id", "kid", "iv")
LONGEST_LA_URL: Final = 512
"""The limit in characters. A player skips the licence request if the address is too long, and a header should be under 1 KB."""
LONGEST_TEMPLATE: Final = 512
LONGEST_PROVIDER: Final = 128

_TEMPLATE: Final = re.compile(rf"(?:skd|https)://(?:[!#-;=?-\[\]_a-z~]|\{{(?:{'|'.join(PLACEHOLDERS)})\}})+")
_PROVIDER: Final = re.compile(rf"[\x21-\x7e]{{1,{LONGEST_PROVIDER}}}")
_VERSIONS: Final = re.compile(r"[1-9][0-9]{0,3}(?:/[1-9][0-9]{0,3}){0,7}")


@dataclass(frozen=True, slots=True)
class DrmSettings:
    """DRM settings with their defaults.

    With `fairplay_direct_plain_value` a FairPlay key is also written directly below its ContentKey. With `fairplay_hex_form` the 32
    hexadecimal characters of a FairPlay key and its IV are encoded instead of the 16 bytes. Both are for packagers that need them.
    """

    playready_la_url: str | None = None
    widevine_provider: str | None = None
    content_id_in_pssh: bool = False
    fairplay_uri_template: str = "skd://{host}/{client}/{content_id}?kid={kid}"
    fairplay_key_format_versions: str = "1"
    fairplay_direct_plain_value: bool = False
    fairplay_hex_form: bool = False


def checked(settings: DrmSettings) -> DrmSettings:
    """Return the settings if they are valid. Raises `Malformed` with all errors."""
    checks = (
        ("playreadyLaUrl", _la_url_fault(settings.playready_la_url)),
        ("widevineProvider", _provider_fault(settings.widevine_provider)),
        ("fairplayUriTemplate", _template_fault(settings.fairplay_uri_template)),
        ("fairplayKeyFormatVersions", _versions_fault(settings.fairplay_key_format_versions)),
    )
    faults = [FieldError(field, fault) for field, fault in checks if fault is not None]
    if faults:
        raise Malformed(*faults)
    return settings


def _la_url_fault(url: str | None) -> str | None:
    if url is None:
        return None
    if len(url) > LONGEST_LA_URL:
        return f"must have at most {LONGEST_LA_URL} characters"
    if "&amp;" in url:
        return "is already escaped for XML; send it unescaped"
    return url_fault(url)


def _provider_fault(provider: str | None) -> str | None:
    if provider is None or _PROVIDER.fullmatch(provider):
        return None
    return f"must be 1 to {LONGEST_PROVIDER} visible ASCII characters"


def _template_fault(template: str) -> str | None:
    if len(template) > LONGEST_TEMPLATE:
        return f"must have at most {LONGEST_TEMPLATE} characters"
    if not _TEMPLATE.fullmatch(template):
        placeholders = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        return f"must be an skd:// or https:// URI without blanks or quotes, braces only in {placeholders}"
    if "{kid}" not in template:
        return "must name the key by {kid}"
    return None


def _versions_fault(versions: str) -> str | None:
    return None if _VERSIONS.fullmatch(versions) else "must be numbers with slashes between them, such as 1/2"
