"""The cause of a change: the actor, the request, and the domain event that led to it. Every domain event carries its cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from uuid import UUID

from domain.kernel.ids import new_id

SYSTEM: Final = "system"
REDACTED: Final = "redacted"
"""The actor of a cause that was erased."""
_SHELL: Final = "shell:"


class ActorKind(StrEnum):
    """The kind of an actor: a program with an API key, a person with a session of the console, the product itself, or a shell."""

    CLIENT = "client"
    PERSON = "person"
    PRODUCT = "product"
    SHELL = "shell"


def usual_kind(actor: str) -> ActorKind | None:
    """Return the kind that an actor with this name has if the log does not store one. Return None for a cause that was erased."""
    if actor == REDACTED:
        return None
    if actor == SYSTEM:
        return ActorKind.PRODUCT
    return ActorKind.SHELL if actor.startswith(_SHELL) else ActorKind.CLIENT


def kind_of(stored: Mapping[str, str]) -> ActorKind | None:
    """Return the kind of the actor in a cause that is stored with an event."""
    named = stored.get("actor_kind")
    return usual_kind(stored.get("actor", SYSTEM)) if named is None else ActorKind(named)


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of a change.

    `actor` is the name of a client, `shell:<user>` or `system`. `end_user` is the person who acts through that client, as reported
    by the client. `correlation_id` is the X-Transaction-ID of the request. `causation_id` is the id of the domain event that led to
    the command, if there is one. The ids of the events that the command causes are derived from `command_id`. `trace_parent` is the
    W3C `traceparent` of the request. `kind` is the kind of the actor, which its name alone does not determine.
    """

    actor: str
    correlation_id: str
    command_id: UUID
    causation_id: UUID | None = None
    end_user: str | None = None
    trace_parent: str | None = None
    kind: ActorKind | None = None
    """The kind of the actor; None stands for the usual one (`usual_kind`)."""

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
        """Return an equal cause in another span of the trace."""
        return self if trace_parent == self.trace_parent else replace(self, trace_parent=trace_parent)

    def event_id(self, index: int) -> UUID:
        """Return the id of the command's `index`-th event. It is the same on every attempt of the command, so a repeat is
        recognised."""
        return UUID(int=self.command_id.int ^ index) if index else self.command_id
