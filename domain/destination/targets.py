"""Targets of destinations, and the configuration of each: docs/reference/api/destinations.md.

The configuration is the text of a destination. Members that are not listed here are allowed and stay in the text. Members that are
needed to reach a target are required; secrets may be null, because they are stored apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Annotated, ClassVar, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StrictInt, StrictStr
from pydantic_core import PydanticCustomError

from domain.channel.secrets import SecretMembers
from domain.kernel.json_document import Section, WriteOnly, checked
from domain.kernel.urls import url_fault

FIELD: Final = "destinationJson"
"""The path of the configuration in a request."""

LONGEST_PATH: Final = 1024
_STREAMS: Final = ("rtmp", "rtmps", "srt")
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
_HOST: Final = re.compile(r"[A-Za-z0-9_.:-]{1,253}")


class Target(IntEnum):
    """The platform or protocol of a destination."""

    FACEBOOK = 0
    TWITTER = 1
    YOUTUBE = 2
    MPX = 3
    CUSTOM = 4
    S3 = 5
    SFTP = 6
    HTTP = 7
    FILESYSTEM = 8


SECRETS: Final = SecretMembers(
    {
        name.casefold(): name
        for name in (
            "password",
            "secretAccessKey",
            "cstm_streamName",
            "fb_accessToken",
            "yt_clientSecret",
            "yt_refreshToken",
        )
    },
    public=frozenset({"accesskeyid", "hostkey", "yt_clientid"}),
    wide=True,
)
"""The write-only members of every configuration of a destination."""


def _filled(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("filled", "must not be blank")
    return value


def _web_url(value: str) -> str:
    fault = url_fault(value)
    if fault is not None:
        raise PydanticCustomError("web_url", "{fault}", {"fault": fault})
    return value


def _stream_url(value: str) -> str:
    try:
        split = urlsplit(value)
        is_stream = split.scheme in _STREAMS and bool(split.hostname) and split.port != 0
    except ValueError:
        is_stream = False
    if not is_stream or not _VISIBLE.fullmatch(value):
        raise PydanticCustomError("stream_url", "must be an rtmp, rtmps or srt URL")
    if "@" in split.netloc:
        raise PydanticCustomError("stream_url", "may not contain a user name")
    return value


def _host(value: str) -> str:
    if not _HOST.fullmatch(value):
        raise PydanticCustomError("host", "must be the name or the address of a host")
    return value


def _path(value: str) -> str:
    """Check the path of a folder, with `/` between its parts."""
    if "\0" in value or "\\" in value or len(value) > LONGEST_PATH:
        raise PydanticCustomError("path", "must be a path of at most {longest} characters", {"longest": LONGEST_PATH})
    if ".." in value.split("/"):
        raise PydanticCustomError("path", "may not contain `..`")
    return value


_Text = Annotated[StrictStr, AfterValidator(_filled)]
_Path = Annotated[StrictStr, AfterValidator(_path)]


class DestinationConfig(Section):
    """The configuration of any target. `REQUIRED` are the secrets that a new destination must have, by their names at the top
    level."""

    REQUIRED: ClassVar[Sequence[str]] = ()


class FacebookConfig(DestinationConfig):
    """The configuration for Facebook. Missing members are reported by the activation."""

    resource_id: StrictStr | None = Field(None, alias="fb_resourceId")
    access_token: WriteOnly = Field(None, alias="fb_accessToken")


class YouTubeConfig(DestinationConfig):
    """The configuration for YouTube. Missing members are reported by the activation."""

    client_id: StrictStr | None = Field(None, alias="yt_clientId")
    client_secret: WriteOnly = Field(None, alias="yt_clientSecret")
    refresh_token: WriteOnly = Field(None, alias="yt_refreshToken")


class CustomConfig(DestinationConfig):
    """A server that receives a live stream. The name of the stream is its key."""

    stream_url: Annotated[StrictStr, AfterValidator(_stream_url)] = Field(alias="cstm_streamUrl")
    stream_name: WriteOnly = Field(None, alias="cstm_streamName")


class S3Config(DestinationConfig):
    REQUIRED: ClassVar[Sequence[str]] = ("secretAccessKey",)

    endpoint: Annotated[StrictStr, AfterValidator(_web_url)]
    bucket: _Text
    prefix: _Path | None = None
    access_key_id: _Text
    secret_access_key: WriteOnly = None


class SftpConfig(DestinationConfig):
    """An SFTP server. `host_key` is its public key; the activation reports it if it is missing or different."""

    REQUIRED: ClassVar[Sequence[str]] = ("password",)

    host: Annotated[StrictStr, AfterValidator(_host)]
    port: Annotated[StrictInt, Field(ge=1, le=65535)] | None = None
    path: _Path
    username: _Text
    password: WriteOnly = None
    host_key: StrictStr | None = None


class HttpHeader(Section):
    """A header of a request. Its value is write-only if its name hints at a credential."""

    name: Annotated[StrictStr, AfterValidator(_filled)]
    value: StrictStr | None = Field(None, repr=False)


class HttpConfig(DestinationConfig):
    """An HTTP server. `{contentId}` in the address becomes the content id of each publication."""

    url: Annotated[StrictStr, AfterValidator(_web_url)]
    method: Literal["PUT", "POST"] | None = None
    headers: tuple[HttpHeader, ...] | None = None


class FilesystemConfig(DestinationConfig):
    """A folder below the root that the operator has set."""

    path: _Path


_CONFIGS: Final[Mapping[Target, type[DestinationConfig]]] = {
    Target.FACEBOOK: FacebookConfig,
    Target.TWITTER: DestinationConfig,
    Target.YOUTUBE: YouTubeConfig,
    Target.MPX: DestinationConfig,
    Target.CUSTOM: CustomConfig,
    Target.S3: S3Config,
    Target.SFTP: SftpConfig,
    Target.HTTP: HttpConfig,
    Target.FILESYSTEM: FilesystemConfig,
}


def config_model(target: Target) -> type[DestinationConfig]:
    return _CONFIGS[target]


def parse_config(target: Target | None, text: str, *, field: str = FIELD) -> DestinationConfig:
    """Parse the configuration of a target; None stands for any target. Raises `Malformed` with the path of every member that is
    missing or wrong."""
    return checked(DestinationConfig if target is None else config_model(target), text, field=field)
