"""The schema of a flow's configuration: docs/reference/api/flows.md."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, Discriminator, Field, StrictBool, StrictStr, Tag, ValidationInfo
from pydantic_core import PydanticCustomError

from domain.channel.hosts import has_placeholder
from domain.channel.placeholders import of_content, of_packaging
from domain.channel.secrets import Step, entry_steps, path_of
from domain.channel.streams import StreamProtocol
from domain.kernel.json_document import (
    FILLED,
    UNSEEN,
    ClosedSection,
    OptionalText,
    Section,
    WriteOnly,
    checked,
    is_new,
    json_object,
    named,
    one_of,
)

TASK_ENGINE: Final = 0
"""The only flow type, as a number."""

_POINTS: Final = ("primaryPublishingPoint", "secondaryPublishingPoint")
_SRVA: Final = f"{UNSEEN}SRVA"
_SRVB: Final = f"{UNSEEN}SRVB"


def _without_others(value: str | None, about: ValidationInfo) -> str | None:
    if value is not None and is_new(about) and has_placeholder(of_packaging(of_content(value, ""), "")):
        raise PydanticCustomError("placeholder", "may have the placeholders {content} and {packaging} only", _PLACEHOLDERS)
    return value


def _without_any(value: str | None, about: ValidationInfo) -> str | None:
    if value is not None and is_new(about) and has_placeholder(value):
        raise PydanticCustomError("placeholder", "may not have placeholders")
    return value


_PLACEHOLDERS: Final = {"content": "{contentId}", "packaging": "{packaging}"}
_Url = Annotated[StrictStr, AfterValidator(_without_others)]
_OptionalUrl = Annotated[OptionalText, AfterValidator(_without_others)]
_Base = Annotated[OptionalText, AfterValidator(_without_any)]


class TaskEngineSpecific(ClosedSection):
    api_url: StrictStr
    flow_gui_url: StrictStr
    callback_urls: tuple[StrictStr, ...] = ()


class StreamingPoint(ClosedSection):
    srva_api: StrictStr
    srva_api_key: WriteOnly = None


class SrvaSettings(ClosedSection):
    primary_publishing_point: StreamingPoint
    secondary_publishing_point: StreamingPoint


class SrvbSettings(ClosedSection):
    not_set: OptionalText = Field(None, alias="not set")


def _kind(settings: object) -> str:
    """Return the kind of the settings. Settings that fit SRVB are SRVB settings; all others are checked as SRVA settings, whose
    keys an error message names."""
    if isinstance(settings, SrvbSettings) or (isinstance(settings, dict) and settings.keys() <= {"not set"}):
        return _SRVB
    return _SRVA


class FlowStreamingServer(Section):
    type: Annotated[str, one_of("SRVA")]
    streaming_server_specific: Annotated[
        Annotated[SrvaSettings, Tag(_SRVA)] | Annotated[SrvbSettings, Tag(_SRVB)], Discriminator(_kind)
    ]


class Stream(ClosedSection):
    stream_protocol: Annotated[StreamProtocol, named(StreamProtocol)]
    vod_cdn_primary_url: _Url
    vod_cdn_secondary_url: _OptionalUrl = None
    vod_origin_primary_url: _Url
    vod_origin_secondary_url: _OptionalUrl = None
    vod_private_url: _OptionalUrl = None


class FlowConfiguration(Section):
    name: StrictStr
    type: Annotated[str, one_of("TaskEngine")]
    ism_url: _Url
    task_engine_specific: TaskEngineSpecific
    streaming_server: FlowStreamingServer
    output_urls: tuple[Stream, ...]
    storage_url_public: _Base = None
    storage_url_private: _Base = None
    capture_on_stop: StrictBool = False
    instant_vod: StrictBool = False


class FlowDocument(Section):
    flows: Annotated[tuple[FlowConfiguration, ...], FILLED]


def first_flow(text: str) -> FlowConfiguration:
    """Return the first flow configuration of a checked text."""
    return checked(FlowDocument, text).flows[0]


def callback_urls(text: str) -> list[str]:
    """Return the callback addresses of all flow configurations, which are notified of the jobs of the flow's Events."""
    return [url for flow in checked(FlowDocument, text).flows for url in flow.task_engine_specific.callback_urls]


def required_secrets(text: str) -> list[str]:
    """Return the paths of required secrets, spelled as in `secrets`: both `srvaApiKey`s of every flow configuration with SRVA
    settings."""
    checked(FlowDocument, text)
    required: list[str] = []
    entries = json_object(text)["flows"]
    for step, flow in zip(entry_steps(entries), entries, strict=True):
        if _kind(flow["streamingServer"]["streamingServerSpecific"]) == _SRVA:
            server: tuple[Step, ...] = ("flows", step, "streamingServer", "streamingServerSpecific")
            required.extend(path_of((*server, point, "srvaApiKey")) for point in _POINTS)
    return required
