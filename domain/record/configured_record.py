"""Records with a JSON text whose write-only members are in the vault: channels, flows and destinations.

See docs/reference/api/conventions.md#write-only-members.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic
from uuid import UUID

from pydantic import BaseModel
from typing_extensions import TypeVar

from domain.channel.secrets import (
    CONFIGURATION,
    Holders,
    SecretMembers,
    Split,
    after_renaming,
    entries_of,
    holder_of,
    merge_secrets,
    split,
)
from domain.kernel.aggregate import NO_SECRETS
from domain.kernel.encryption import SecretRef, stored_or_new
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.json_document import Section
from domain.kernel.strict_json import path_inside
from domain.record.record import Record


class ConfiguredDetails(BaseModel):
    """Fields of a configured record. `configuration_json` is the text as it was sent, with null in place of every secret;
    `secrets` holds their references, by place."""

    name: str
    configuration_json: str
    secrets: dict[str, SecretRef] = {}


@dataclass(frozen=True, slots=True)
class SentConfiguration:
    """The JSON text of a command. `text` is the text without its secrets. `sent` holds those secrets; None clears one. `holders`
    are the places of all objects in the text, with the origins of the addresses in each. `nulls` are the places of secrets that
    are null in it. `required` are the places that must have a secret if their object is in the text."""

    text: str
    sent: Mapping[str, SecretRef | None]
    holders: Holders
    nulls: frozenset[str] = frozenset()
    required: Sequence[str] = ()


C = TypeVar("C", bound=ConfiguredDetails, default=ConfiguredDetails)
C_co = TypeVar("C_co", bound=ConfiguredDetails, covariant=True, default=ConfiguredDetails)


class ConfiguredRecord(Record[C_co], Generic[C_co]):
    """A record with a JSON configuration. In a write, a secret that is null or absent stays as it is, and "" clears it, so the
    response of a GET can be sent back.

    `FIELD` is the name of the text in requests, and `MEMBERS` are its write-only members.
    """

    SCHEMA: ClassVar[type[Section]]
    FIELD: ClassVar[str] = "configurationJson"
    MEMBERS: ClassVar[SecretMembers] = CONFIGURATION

    @classmethod
    def split(cls, text: str) -> Split:
        """Separate a text from its secrets."""
        return split(text, field=cls.FIELD, members=cls.MEMBERS)

    @classmethod
    def required_secrets(cls, text: str) -> Sequence[str]:
        """Return the places in a checked text that must have a secret."""
        return ()

    @classmethod
    def prepare_values(cls, values: Mapping[str, Any], stored: Any) -> Mapping[str, Any]:
        sent_text = values.get("configuration_json")
        if sent_text is None:
            return values
        assert isinstance(sent_text, SentConfiguration)
        places = cls._places(stored, sent_text)
        stored_secrets = {place: stored.secrets[before] for place, before in places.items()}
        sent = {place: stored_or_new(stored_secrets.get(place), ref) for place, ref in sent_text.sent.items()}
        retained = merge_secrets(stored_secrets, sent, holders=sent_text.holders)
        cls._check_origins({place: places[place] for place in retained if place not in sent}, sent_text, stored=stored)
        missing = [place for place in sent_text.required if place not in retained and place not in sent]
        if missing:
            cls._check_new(missing, sent_text, stored=stored)
        return {**values, "configuration_json": sent_text.text, "secrets": retained}

    def secrets(self) -> frozenset[UUID]:
        if self.deleted or not self.details.secrets:
            return NO_SECRETS
        return frozenset(ref.reference for ref in self.details.secrets.values())

    @classmethod
    def _places(cls, stored: Any, sent_text: SentConfiguration) -> Mapping[str, str]:
        """Return the places of the stored secrets, by those in the new text. A renamed entry keeps its secret if the text has
        null for it, as a GET shows it; an entry without that member may be a different one and gets none."""
        if stored is None:
            return {}
        if all(holder_of(place) in sent_text.holders for place in stored.secrets):
            return {place: place for place in stored.secrets}
        old, new = entries_of(cls.split(stored.configuration_json).holders), entries_of(sent_text.holders)
        places = ((place, after_renaming(place, old=old, new=new)) for place in stored.secrets)
        return {moved if moved in sent_text.nulls else place: place for place, moved in places}

    @classmethod
    def _check_origins(cls, retained: Mapping[str, str], sent_text: SentConfiguration, *, stored: Any) -> None:
        """Check that a stored secret is only sent to the origin that it was given for. `retained` maps new places to old ones."""
        if not retained:
            return
        before = cls.split(stored.configuration_json).holders
        moved = [new for new, old in retained.items() if sent_text.holders[holder_of(new)] != before.get(holder_of(old))]
        if moved:
            fields = (path_inside(cls.FIELD, _counted(place, sent_text.text)) for place in moved)
            reason = "must be sent again, because an address next to it has another scheme, host, port or host key"
            raise Malformed(*(FieldError(field, reason) for field in fields))

    @classmethod
    def _check_new(cls, missing: Sequence[str], sent_text: SentConfiguration, *, stored: Any) -> None:
        """Check that a required secret comes with its object. A secret that was cleared later is not required again, because the
        response of a GET could not be sent back otherwise."""
        old_holders = cls.split(stored.configuration_json).holders if stored is not None else frozenset()
        old, new = entries_of(old_holders), entries_of(sent_text.holders)

        def existed(place: str) -> bool:
            holder = holder_of(place)
            return holder in old_holders or (place in sent_text.nulls and after_renaming(holder, old=new, new=old) in old_holders)

        unmet = [place for place in missing if not existed(place)]
        if unmet:
            fields = (path_inside(cls.FIELD, _counted(place, sent_text.text)) for place in unmet)
            raise Malformed(*(FieldError(field, "is required") for field in fields))


def _counted(place: str, text: str) -> Iterator[int | str]:
    """Yield the steps of a place as in other messages: entries of arrays by their index."""
    node: Any = json.loads(text)
    for step in json.loads(place):
        if isinstance(step, dict):
            step = next(index for index, entry in enumerate(node) if isinstance(entry, dict) and step.items() <= entry.items())
        yield step
        node = node.get(step) if isinstance(node, dict) else node[step]
