"""The configuration of a flow: how the platform reaches a job engine, a streaming server and the streams (document 3, "Flow")."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Discriminator, Field, StrictStr, Tag

from domain.configuration.schema import (
    FILLED,
    UNSEEN,
    ClosedSection,
    OptionalText,
    Section,
    WriteOnly,
    checked,
    json_object,
    named,
    one_of,
)
from domain.configuration.secrets import Step, entry_steps, path_of
from domain.media_event.playback.stream import StreamProtocol

TASK_ENGINE: Final = 0  # the one flow type, as a number: document 3, "the service object"

_POINTS: Final = ("primaryPublishingPoint", "secondaryPublishingPoint")
_SRVA: Final = f"{UNSEEN}SRVA"
_SRVB: Final = f"{UNSEEN}SRVB"


class TaskEngineSpecific(ClosedSection):
    api_url: StrictStr
    flow_gui_url: StrictStr
    callback_urls: tuple[StrictStr, ...] = ()


class PublishingPoint(ClosedSection):
    srva_api: StrictStr
    srva_api_key: WriteOnly = None


class SrvaSettings(ClosedSection):
    primary_publishing_point: PublishingPoint
    secondary_publishing_point: PublishingPoint


class SrvbSettings(ClosedSection):
    not_set: OptionalText = Field(None, alias="not set")


def _kind(settings: object) -> str:
    """What can be SRVB settings is; all else is judged as SRVA settings, whose keys the messages then name."""
    if isinstance(settings, SrvbSettings) or (isinstance(settings, dict) and settings.keys() <= {"not set"}):
        return _SRVB
    return _SRVA


class StreamingServer(Section):
    type: Annotated[str, one_of("SRVA")]
    streaming_server_specific: Annotated[
        Annotated[SrvaSettings, Tag(_SRVA)] | Annotated[SrvbSettings, Tag(_SRVB)], Discriminator(_kind)
    ]


class Stream(ClosedSection):
    stream_protocol: Annotated[StreamProtocol, named(StreamProtocol)]
    vod_cdn_primary_url: StrictStr
    vod_cdn_secondary_url: OptionalText = None
    vod_origin_primary_url: StrictStr
    vod_origin_secondary_url: OptionalText = None
    vod_private_url: OptionalText = None


class FlowConfiguration(Section):
    name: StrictStr
    type: Annotated[str, one_of("TaskEngine")]
    ism_url: StrictStr
    task_engine_specific: TaskEngineSpecific
    streaming_server: StreamingServer
    output_urls: tuple[Stream, ...]
    storage_url_public: OptionalText = None
    storage_url_private: OptionalText = None


class FlowDocument(Section):
    flows: Annotated[tuple[FlowConfiguration, ...], FILLED]


def task_engine(text: str) -> dict[str, Any]:
    """The service object of `/flow/taskengines/{id}`: the first flow configuration, without its keys (decisions.md,
    "Infrastructure and provisioning")."""
    flow = checked(FlowDocument, text).flows[0]
    engine, server = flow.task_engine_specific, flow.streaming_server
    settings = server.streaming_server_specific
    srva = settings if isinstance(settings, SrvaSettings) else None
    return {
        "name": flow.name,
        "flowType": TASK_ENGINE,
        "flowDetails": {"apiUrl": engine.api_url, "flowGuiUrl": engine.flow_gui_url},
        "streamingServerDetails": {
            "type": server.type,
            "primaryPublishingPoint": {"srvaApi": srva.primary_publishing_point.srva_api} if srva else None,
            "secondaryPublishingPoint": {"srvaApi": srva.secondary_publishing_point.srva_api} if srva else None,
        },
        "outputStreams": [_output_stream(stream) for stream in flow.output_urls],
        "callbackUrls": list(engine.callback_urls),
        "ismUrl": flow.ism_url,
    }


def callback_urls(text: str) -> list[str]:
    """Where jobs of the flow's Events are told to, by every flow configuration."""
    return [url for flow in checked(FlowDocument, text).flows for url in flow.task_engine_specific.callback_urls]


def required_secrets(text: str) -> list[str]:
    """The paths, as in `secrets`, of the `srvaApiKey`s that must be there: both of every flow configuration with SRVA settings."""
    checked(FlowDocument, text)
    found: list[str] = []
    entries = json_object(text)["flows"]
    for step, flow in zip(entry_steps(entries), entries, strict=True):
        if _kind(flow["streamingServer"]["streamingServerSpecific"]) == _SRVA:
            server: tuple[Step, ...] = ("flows", step, "streamingServer", "streamingServerSpecific")
            found.extend(path_of((*server, point, "srvaApiKey")) for point in _POINTS)
    return found


def _output_stream(stream: Stream) -> dict[str, Any]:
    return {
        "streamProtocol": int(stream.stream_protocol),
        "vodCdnPrimaryUrl": stream.vod_cdn_primary_url,
        "vodCdnSecondaryUrl": stream.vod_cdn_secondary_url,
        "vodOriginPrimaryUrl": stream.vod_origin_primary_url,
        "vodOriginSecondaryUrl": stream.vod_origin_secondary_url,
        "vodPrivateUrl": stream.vod_private_url,
    }
