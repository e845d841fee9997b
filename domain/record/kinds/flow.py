"""Flow: the addresses of a job engine, a streaming server and its outputs; see docs/reference/api/flows.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from domain.channel.flow import FlowDocument, required_secrets
from domain.kernel.json_document import Section
from domain.record.configured_record import ConfiguredDetails, ConfiguredRecord


class Flow(ConfiguredRecord[ConfiguredDetails]):
    KIND: ClassVar[str] = "flow"
    SCHEMA: ClassVar[type[Section]] = FlowDocument

    @classmethod
    def required_secrets(cls, text: str) -> Sequence[str]:
        return required_secrets(text)
