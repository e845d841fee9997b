"""Playback of an Event: streams and their sources, the configurations of channel and flow, and the Video object."""

from domain.channel.playback import (
    ChannelConfiguration,
    PlaybackEncoder,
    PlaybackFlow,
    PlaybackProfile,
    PlaybackServer,
    StreamAddresses,
    channel_configuration,
    flow_configuration,
)
from domain.channel.streams import StreamPlace, StreamProtocol
from domain.event.playback.video_object import (
    PlayableEvent,
    PlaybackRequest,
    PlayerAddresses,
    PublishingPointUrl,
    StreamSource,
    StreamUrl,
    Video,
    current_flow,
    thumbnail_flow,
    thumbnail_path,
    thumbnail_url,
    video,
)

__all__ = [
    "ChannelConfiguration",
    "PlayableEvent",
    "PlaybackEncoder",
    "PlaybackFlow",
    "PlaybackProfile",
    "PlaybackRequest",
    "PlaybackServer",
    "PlayerAddresses",
    "PublishingPointUrl",
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
    "thumbnail_path",
    "thumbnail_url",
    "video",
]
