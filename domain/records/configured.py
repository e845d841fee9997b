"""Records with a JSON text whose write-only members lie in the vault: channels and flows. decisions.md, "Everywhere"."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from pydantic import BaseModel

from domain.configuration.schema import Section
from domain.configuration.secrets import after_renaming, entries_of, holder_of, settled, split
from domain.kernel.aggregate import NO_SECRETS
from domain.kernel.errors import FieldError, Malformed
from domain.kernel.sealed import SecretRef
from domain.kernel.strict_json import path_inside
from domain.records.record import Record


class ConfiguredDetails(BaseModel):
    """`configuration_json` is the text as it was sent, with null in place of every secret; `secrets` says, by place, where the
    secrets lie."""

    name: str
    configuration_json: str
    secrets: dict[str, SecretRef] = {}


@dataclass(frozen=True, slots=True)
class SentConfiguration:
    """A text as a command brings it: `text` without its secrets, `sent` those secrets (None: cleared), `holders` the places of
    all objects in the text, `nulls` those of secrets that are null in it, `required` the places where there must be a secret once
    their holder is there."""

    text: str
    sent: Mapping[str, SecretRef | None]
    holders: frozenset[str]
    nulls: frozenset[str] = frozenset()
    required: Sequence[str] = ()


class ConfiguredRecord(Record):
    """In a write null or absent keeps the secret that is stored, "" clears it; what a GET shows can be sent back."""

    SCHEMA: ClassVar[type[Section]]

    @classmethod
    def required_secrets(cls, text: str) -> Sequence[str]:
        """The places in a checked text where there must be a secret."""
        return ()

    @classmethod
    def settled(cls, values: Mapping[str, Any], stored: Any) -> Mapping[str, Any]:
        brought = values.get("configuration_json")
        if brought is None:
            return values
        assert isinstance(brought, SentConfiguration)
        held = _held(stored, brought)
        sent = {place: known_again(held.get(place), ref) for place, ref in brought.sent.items()}
        kept = settled(held, sent, holders=brought.holders)
        missing = [place for place in brought.required if place not in kept and place not in sent]
        if missing:
            _check_new(missing, brought, stored=stored)
        return {**values, "configuration_json": brought.text, "secrets": kept}

    def secrets(self) -> frozenset[UUID]:
        if self.withdrawn or not self.details.secrets:
            return NO_SECRETS
        return frozenset(ref.reference for ref in self.details.secrets.values())


def _held(stored: Any, brought: SentConfiguration) -> Mapping[str, SecretRef]:
    """The secrets that are stored, by their places in the new text. What was renamed keeps its secret where the text has null for
    it, as a GET shows it; an entry that says nothing of a secret may be another one, and gets none."""
    if stored is None:
        return {}
    held: Mapping[str, SecretRef] = stored.secrets
    if all(holder_of(place) in brought.holders for place in held):
        return held
    old, new = entries_of(split(stored.configuration_json).holders), entries_of(brought.holders)
    places = ((place, after_renaming(place, old=old, new=new)) for place in held)
    return {moved if moved in brought.nulls else place: held[place] for place, moved in places}


def _check_new(missing: Sequence[str], brought: SentConfiguration, *, stored: Any) -> None:
    """A required secret must come with its holder. One that was cleared since is not asked for again, or what a GET shows could
    not be sent back."""
    known = split(stored.configuration_json).holders if stored is not None else frozenset()
    old, new = entries_of(known), entries_of(brought.holders)

    def was_there(place: str) -> bool:
        holder = holder_of(place)
        return holder in known or (place in brought.nulls and after_renaming(holder, old=new, new=old) in known)

    asked = [place for place in missing if not was_there(place)]
    if asked:
        fields = (path_inside("configurationJson", _counted(place, brought.text)) for place in asked)
        raise Malformed(*(FieldError(field, "is required") for field in fields))


def _counted(place: str, text: str) -> Iterator[int | str]:
    """The steps of a place as all other messages spell them, entries of arrays by their index."""
    node: Any = json.loads(text)
    for step in json.loads(place):
        if isinstance(step, dict):
            step = next(index for index, entry in enumerate(node) if isinstance(entry, dict) and step.items() <= entry.items())
        yield step
        node = node.get(step) if isinstance(node, dict) else node[step]


def known_again(held: SecretRef | None, sent: SecretRef | None) -> SecretRef | None:
    """The same secret sent again stays where it lies."""
    return held if held is not None and sent is not None and held.fingerprint == sent.fingerprint else sent
