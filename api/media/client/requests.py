"""Requests for clients: docs/reference/api/clients.md."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from api.kernel.wire import Between, Flag, Integer, Label, Text, Wire
from domain.client.roles import Role
from domain.drm.settings import DrmSettings

_CENTURY = 100 * 365 * 24 * 3600
_FAIRPLAY_URI = DrmSettings().fairplay_uri_template

Roles = Annotated[list[Role], Field(min_length=1)]


class AddClientRequest(Wire):
    """A new client."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "playout", "roles": ["operator"]}]})

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")] = Field(
        description="1 to 64 of A-Z a-z 0-9 . _ -; upper and lower case differ; some names are reserved."
    )
    roles: Roles = Field(description="At least one of viewer, operator, auditor, keys, admin.")
    trust_actor: Flag = Field(False, description="True if it may name its end user in the header X-Actor. Default false.")


class ChangeClientRolesRequest(Wire):
    """The roles of a client, and whether its end users are trusted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"roles": ["operator", "keys"]}]})

    roles: Roles = Field(description="The new roles of the client, at least one of viewer, operator, auditor, keys, admin.")
    trust_actor: Flag | None = Field(
        None, description="True if it may name its end user in the header X-Actor; absent or null: unchanged."
    )


class IssueApiKeyRequest(Wire):
    """A new key, and the expiry of the client's other keys."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"expireOthersAfter": 86400}]})

    expire_others_after: Annotated[Integer, Between(0, _CENTURY)] | None = Field(
        default=None,
        description="Seconds after which the client's other keys stop working, 0 for immediately; null or absent: they keep "
        "working.",
    )


class ConfigureDrmRequest(Wire):
    """Changes of DRM settings. An absent field stays unchanged; null sets the default."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "playreadyLaUrl": "https://drm.example/rightsmanager.asmx",
                    "fairplayUriTemplate": "skd://fps.example/{content_id}?kid={kid}",
                }
            ]
        }
    )

    playready_la_url: Text | None = Field(
        default=None,
        description="Licence address in PlayReady headers, an http or https URL of at most 512 characters; "
        "null (the default): none.",
    )
    widevine_provider: Label | None = Field(
        default=None, description="Provider name in Widevine boxes, 1 to 128 visible ASCII characters; null (the default): none."
    )
    content_id_in_pssh: Flag | None = Field(
        default=None, description="True if Widevine boxes hold the content id; default false, null means the default."
    )
    fairplay_uri_template: Text | None = Field(
        default=None,
        description="FairPlay key URI, skd:// or https://, at most 512 characters, with {kid} and optionally {host}, {client}, "
        f"{{content_id}}, {{iv}}; null means the default {_FAIRPLAY_URI}.",
    )
    fairplay_key_format_versions: Label | None = Field(
        default=None,
        description="KEYFORMATVERSIONS of FairPlay, numbers separated by slashes; null means the default 1.",
    )
    fairplay_direct_plain_value: Flag | None = Field(
        default=None,
        description="True if a key requested for FairPlay is repeated in a PlainValue directly below ContentKey; "
        "default false, null means the default.",
    )
    fairplay_hex_form: Flag | None = Field(
        default=None,
        description="True if a FairPlay key, and an IV that was not sent, is base64 of its 32 hexadecimal characters instead of "
        "its 16 bytes; default false, null means the default.",
    )
