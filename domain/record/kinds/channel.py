"""Channel: encoders, streaming servers and the addresses of their streams; see docs/reference/api/channels.md."""

from __future__ import annotations

from typing import ClassVar

from domain.channel.channel import ChannelDocument
from domain.kernel.json_document import Section
from domain.record.configured_record import ConfiguredDetails, ConfiguredRecord


class ChannelDetails(ConfiguredDetails):
    configuration_json: str = "{}"
    reference_id: str | None = None


class Channel(ConfiguredRecord[ChannelDetails]):
    KIND: ClassVar[str] = "channel"
    SCHEMA: ClassVar[type[Section]] = ChannelDocument
