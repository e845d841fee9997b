"""How an Event is watched: streams and their sources, what channel and flow configure, and the Video object made of it."""

from domain.media_event.playback.configuration import (
    ChannelConfiguration,
    Encoder,
    FlowConfiguration,
    PlayoutProfile,
    PublishingPoint,
    RampServer,
    StreamAddresses,
    channel_configuration,
    flow_configuration,
)
from domain.media_event.playback.stream import StreamPlace, StreamProtocol, StreamSource, StreamUrl
from domain.media_event.playback.video_object import (
    PlayableEvent,
    PlaybackRequest,
    PlayerAddresses,
    PublishingPointUrl,
    Video,
    flow_links,
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
    "PublishingPoint",
    "PublishingPointUrl",
    "RampServer",
    "StreamAddresses",
    "StreamPlace",
    "StreamProtocol",
    "StreamSource",
    "StreamUrl",
    "Video",
    "channel_configuration",
    "flow_configuration",
    "flow_links",
    "video",
]
