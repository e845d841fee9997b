"""Encoders of channels: entry points of the group `medialedger.encoders`, each an `EncoderPlugin`."""

from domain.channel.encoding import EncoderPlan, PointPlan
from domain.event.values import AudioInput
from workers.ports.encoders import Encoder, EncoderFailed, EncoderStatistics, PointStatistics, RunningEncoder
from workers.ports.outbound import Outbound, OutboundFailed, OutboundRefused, Reply
from workers.ports.plugins import EncoderPlugin

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
