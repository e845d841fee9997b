"""Converts decisions to the writes of an append: event rows, view rows, and the changes of references."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_core import to_json

from domain.kernel.cause import Cause, usual_kind
from domain.kernel.decision import Decision
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from projections.kernel.schema.view import Views
from projections.log.statement import LinkRow, LogRow, WriteSet


class WriteSets:
    """Makes one `WriteSet` of the decisions of a unit of work."""

    def __init__(self, mapper: EventMapper, views: Views) -> None:
        self._mapper = mapper
        self._views = views

    def of(self, decisions: Sequence[Decision], cause: Cause) -> WriteSet:
        changed = [decision for decision in decisions if decision.events]
        append = WriteSet(
            events=self.event_rows([event for decision in changed for event in decision.events], cause),
            rows=[row for decision in changed for row in self._views.rows(decision.aggregate, previous=decision.previous)],
        )
        for decision in changed:
            _add_references(append, decision)
        return append

    def event_rows(self, events: Sequence[DomainEvent], cause: Cause) -> list[LogRow]:
        metadata = metadata_text(cause)
        return [
            LogRow.of(
                stream=event.originator_id,
                version=event.originator_version,
                topic=event.TOPIC,
                event_id=cause.event_id(index),
                state=self._mapper.state(event),
                metadata=metadata,
            )
            for index, event in enumerate(events)
        ]


def _add_references(append: WriteSet, decision: Decision) -> None:
    aggregate, before, after = decision.aggregate, decision.before, decision.aggregate.references()
    if before == after:
        return
    append.claims.extend(after.claims - before.claims)
    append.releases.extend(before.claims - after.claims)
    required = not decision.command.ignore_missing_links
    append.linked.extend(LinkRow(aggregate.id, target, required) for target in after.links - before.links)
    append.unlinked.extend(LinkRow(aggregate.id, target) for target in before.links - after.links)
    append.sealed.extend(secret for secret in decision.command.sealed if secret.reference in after.secrets - before.secrets)
    append.erased.extend(before.secrets - after.secrets)
    if after.linkable != before.linkable:
        (append.now_linkable if after.linkable else append.no_longer_linkable).append(aggregate.id)


def metadata_text(cause: Cause) -> str:
    """Return the cause in the form in which it is stored with each event: compact JSON without absent members."""
    members = {"actor": cause.actor, "correlation_id": cause.correlation_id, "command_id": cause.command_id}
    if cause.causation_id is not None:
        members["causation_id"] = cause.causation_id
    if cause.end_user is not None:
        members["end_user"] = cause.end_user
    if cause.trace_parent is not None:
        members["trace_parent"] = cause.trace_parent
    if cause.kind is not None and cause.kind is not usual_kind(cause.actor):
        members["actor_kind"] = cause.kind
    return to_json(members).decode()
