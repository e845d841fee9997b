"""Changes of an Event, and what is written down about it when a running stream kept a field as it was.

Document 2, POST /event/, and decisions.md, "Events": a changed ChannelId or InfrastructureProfileId is then left as it is, and
the answer is 200 all the same. So that nobody has to guess, the log store says it: decisions.md, "Health, logs".
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic.alias_generators import to_pascal

from api.kernel.answer import Answer
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.media.event.show import EventAnswers
from domain.kernel.errors import Unavailable
from domain.media_event.aggregate import HELD_WHILE_STREAMING, MediaEvent
from domain.media_event.commands import AddOrUpdateEvent, AmendEvent, Replacement
from projections.log.ledger import Plan
from projections.logbook.logbook import Level, Logbook

_FIELDS = {name: to_pascal(name) for name in HELD_WHILE_STREAMING}
_logger = logging.getLogger("medialedger.http")


class EventWrites:
    """Sends a change of an Event, notes what was left as it was, and answers with the Event."""

    def __init__(self, bus: CommandBus, answers: EventAnswers, *, logbook: Logbook) -> None:
        self._bus = bus
        self._answers = answers
        self._logbook = logbook

    async def send(self, call: Call, plan: Callable[[], Awaitable[Plan[MediaEvent]]]) -> Answer:
        wanted: Mapping[str, Any] = {}
        left: list[str] = []
        key: object = None

        async def planned() -> Plan[MediaEvent]:
            nonlocal wanted, key
            made = await plan()
            wanted, key = _wanted(made.command), made.command.key
            return made

        async def show(event: MediaEvent) -> Answer:
            nonlocal left
            left = [field for name, field in _FIELDS.items() if name in wanted and wanted[name] != getattr(event.details, name)]
            return await self._answers.written(call, event)

        answer = await self._bus.send(call, planned, show)
        for field in left:
            await self._note(field, str(key))
        return answer

    async def _note(self, field: str, key: str) -> None:
        """The change is made: to report a failure now would be a lie."""
        message = f"{field} was left as it was: it cannot be changed while the Event streams or is being provisioned"
        try:
            await self._logbook.note(Level.WARN, message, subject=key)
        except Unavailable as fault:
            _logger.warning("%s, of Event %s; not in the log store: %s", message, key, fault)


def _wanted(command: object) -> Mapping[str, Any]:
    """The values that the command sets, by the names of `EventDetails`."""
    if isinstance(command, AddOrUpdateEvent):
        return command.changes
    assert isinstance(command, AmendEvent), "the two commands that set links"
    return {step.name: step.value for step in command.steps if isinstance(step, Replacement)}
