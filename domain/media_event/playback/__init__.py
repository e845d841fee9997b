"""Playback of an Event: streams and their sources, the configurations of channel and flow, and the Video object."""

from domain.configuration.playback import (
    ChannelConfiguration,
    Encoder,
    FlowConfiguration,
    PlayoutProfile,
    RampServer,
    StreamAddresses,
    channel_configuration,
    flow_configuration,
)
from domain.configuration.streams import StreamPlace, StreamProtocol
from domain.media_event.playback.stream import StreamSource, StreamUrl
from domain.media_event.playback.thumbnail import thumbnail_flow, thumbnail_url
from domain.media_event.playback.video_object import (
    PlayableEvent,
    PlaybackRequest,
    PlayerAddresses,
    PublishingPointUrl,
    Video,
    current_flow,
    video,
)

__all__ = [
    "ChannelConfiguration",
    "Encoder",
    "FlowConfiguration",
    "PlayableEvent",
    "PlaybackRequest",
    "PlayerAddresses",
    "PlayoutProfile",
    "PublishingPointUrl",
    "RampServer",
    "StreamAddresses",
    "StreamPlace",
    "StreamProtocol",
    "StreamSource",
    "StreamUrl",
    "Video",
    "channel_configuration",
    "current_flow",
    "flow_configuration",
    "thumbnail_flow",
    "thumbnail_url",
    "video",
]
