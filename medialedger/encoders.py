"""Encoders of channels: entry points of the group `medialedger.encoders`, each an `EncoderPlugin`."""

from domain.configuration.encoding import EncoderPlan, PointPlan
from domain.media_event.values import AudioInput
from workers.plugin_ports import EncoderPlugin
from workers.ports import (
    Encoder,
    EncoderFailed,
    EncoderStatistics,
    Outbound,
    OutboundFailed,
    OutboundRefused,
    PointStatistics,
    Reply,
    RunningEncoder,
)

__all__ = [
    "AudioInput",
    "Encoder",
    "EncoderFailed",
    "EncoderPlan",
    "EncoderPlugin",
    "EncoderStatistics",
    "Outbound",
    "OutboundFailed",
    "OutboundRefused",
    "PointPlan",
    "PointStatistics",
    "Reply",
    "RunningEncoder",
]
