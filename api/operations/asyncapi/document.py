"""The AsyncAPI 3.0 document: its two parts, the servers, and the guarantees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pydantic_core import to_json

from api.http.response import Document
from api.operations.asyncapi.kafka import kafka_part
from api.operations.asyncapi.webhooks import webhook_part
from domain.kernel.mapper import Catalogue

_LICENCE = {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"}
_GUARANTEES = (
    "The messages that medialedger sends: its event log in Kafka, and notifications to webhooks. "
    "The events of an aggregate, and the notifications of an Event to a webhook, arrive in the order in which they happened. "
    "Each arrives at least once; a repeat has the same log position in Kafka (`ce_position`), the same `webhook-id` at a webhook."
)
_SERVERS = {
    "kafka": {
        "host": "{bootstrap}",
        "protocol": "kafka",
        "description": "Only if MEDIALEDGER_KAFKA_BOOTSTRAP_SERVERS is set.",
        "variables": {
            "bootstrap": {"default": "localhost:9092", "description": "A broker of MEDIALEDGER_KAFKA_BOOTSTRAP_SERVERS."}
        },
    },
    "subscriber": {
        "host": "{host}",
        "protocol": "https",
        "description": "The http or https URL of a webhook: its `webhookUrl`.",
        "variables": {"host": {"default": "subscriber.example", "description": "The host and port of the webhook's URL."}},
    },
}


class AsyncApi:
    """The AsyncAPI document. `topic` returns the topic of a kind of aggregate; `partitions` is the number of partitions of each
    topic."""

    def __init__(self, catalogue: Catalogue, *, version: str, topic: Callable[[str], str], partitions: int) -> None:
        self._catalogue = catalogue
        self._version = version
        self._topic = topic
        self._partitions = partitions
        self._document: Document | None = None

    def describe(self) -> dict[str, Any]:
        sections: dict[str, Any] = {}
        for part in (kafka_part(self._catalogue, topic=self._topic, partitions=self._partitions), webhook_part()):
            for section, members in part.items():
                sections.setdefault(section, {}).update(members)
        return {
            "asyncapi": "3.0.0",
            "info": {"title": "medialedger", "version": self._version, "description": _GUARANTEES, "license": _LICENCE},
            "defaultContentType": "application/json",
            "servers": _SERVERS,
            "channels": sections.pop("channels"),
            "operations": sections.pop("operations"),
            "components": sections,
        }

    async def rendered(self) -> Document:
        """Return the document as JSON, made in a thread at the first request."""
        if self._document is None:
            self._document = await asyncio.to_thread(lambda: Document(to_json(self.describe())))
        return self._document
