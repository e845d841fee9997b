"""Reads the `configurationJson` of channels and flows: checked against its schema, its secrets sealed before anything keeps it."""

from __future__ import annotations

from typing import Any

from api.kernel.wire import Wire
from api.media.resource import Resource
from domain.configuration.schema import checked
from domain.configuration.secrets import split
from domain.kernel.sealed import Sealed
from domain.records.configured import ConfiguredRecord, SentConfiguration
from projections.vault.vault import Vault


class Configurations:
    """Turns a body into what a record keeps of it, and the sealed secrets that go along with the command."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def values(self, resource: Resource, body: Wire, *, key: object) -> tuple[dict[str, Any], list[Sealed]]:
        """`key` is the record's, a new one's too: its secrets are sealed for its stream. `Malformed` names the path inside the
        text."""
        kind, values = resource.kind, resource.values(body)
        text = values.get("configuration_json")
        if text is None:
            return values, []
        assert issubclass(kind, ConfiguredRecord)
        checked(kind.SCHEMA, text)
        found = split(text)
        sealed = {place: self._vault.seal(secret, owner=kind.stream(key)) for place, secret in found.sent.items() if secret}
        sent = {place: sealed[place].ref if place in sealed else None for place in found.sent}
        brought = SentConfiguration(found.text, sent, found.holders, found.nulls, kind.required_secrets(text))
        return {**values, "configuration_json": brought}, list(sealed.values())
