"""The cause of a change: who made it, in which request, after which event. Every domain event carries it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from uuid import UUID

from domain.kernel.ids import new_id

SYSTEM: Final = "system"
REDACTED: Final = "redacted"
"""Stands where a cause was erased."""
_SHELL: Final = "shell:"


class ActorKind(StrEnum):
    """What an actor is: a program with an API key, a person with a session of the console, the product itself, or a shell."""

    CLIENT = "client"
    PERSON = "person"
    PRODUCT = "product"
    SHELL = "shell"


def usual_kind(actor: str) -> ActorKind | None:
    """What an actor of this name is where the log says nothing else; None for a cause that was erased."""
    if actor == REDACTED:
        return None
    if actor == SYSTEM:
        return ActorKind.PRODUCT
    return ActorKind.SHELL if actor.startswith(_SHELL) else ActorKind.CLIENT


def kind_of(stored: Mapping[str, str]) -> ActorKind | None:
    """The kind of the actor of a cause, as it is stored with an event."""
    named = stored.get("actor_kind")
    return usual_kind(stored.get("actor", SYSTEM)) if named is None else ActorKind(named)


@dataclass(frozen=True, slots=True)
class Cause:
    """`actor` is a client's name, `shell:<user>` or `system`; `end_user` who acts through that client, as the client says;
    `correlation_id` the request's X-Transaction-ID; `causation_id` the id of the domain event that led to the command, if one did;
    `command_id` makes the ids of the events that the command causes. `trace_parent` is the W3C `traceparent` of the request.
    `kind` says what the actor is: its name alone does not."""

    actor: str
    correlation_id: str
    command_id: UUID
    causation_id: UUID | None = None
    end_user: str | None = None
    trace_parent: str | None = None
    kind: ActorKind | None = None
    """None: the usual one."""

    @classmethod
    def by(
        cls,
        actor: str,
        *,
        correlation_id: str | None = None,
        causation_id: UUID | None = None,
        end_user: str | None = None,
        trace_parent: str | None = None,
        kind: ActorKind | None = None,
    ) -> Cause:
        command_id = new_id()
        return cls(actor, correlation_id or str(command_id), command_id, causation_id, end_user, trace_parent, kind)

    def traced(self, trace_parent: str | None) -> Cause:
        """The same cause in another span of the trace."""
        return self if trace_parent == self.trace_parent else replace(self, trace_parent=trace_parent)

    def event_id(self, index: int) -> UUID:
        """The id of the command's `index`-th event: the same each time the command is tried, so a repeat is recognised."""
        return UUID(int=self.command_id.int ^ index) if index else self.command_id
