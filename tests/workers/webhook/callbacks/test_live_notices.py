"""Notices of live publications: one for each change, with the details that are then known and no secret."""

from __future__ import annotations

from uuid import UUID

import pytest

from domain.kernel.command import Command
from domain.publication.aggregate import Publication
from tests.domain.publication.test_streaming import ARRIVED, CLOSED, KEY, LIVE, RUN, STARTED, STOPPED
from tests.domain.scenario import Fact, given
from workers.webhook.callbacks.fanout import NOTED, notice_of


@pytest.mark.parametrize(
    ("since", "command", "state"),
    [
        ((), Publication.start.on(KEY, {"id": "b1"}), "InProgress"),
        ((STARTED,), Publication.arrive.on(KEY, RUN, details={}), "InProgress"),
        ((STARTED, ARRIVED), Publication.stop.on(KEY, "the Event has ended"), "Completed"),
        ((STARTED, STOPPED, CLOSED), Publication.recreate.on(KEY), "Scheduled"),
    ],
)
def test_each_change_of_a_stream_has_a_notice(since: tuple[Fact, ...], command: Command[Publication], state: str) -> None:
    outcome = given(Publication, KEY, LIVE, *since).when(command)
    (event,) = outcome.happened
    assert event.TOPIC in NOTED
    root = outcome.after
    assert isinstance(root, Publication)
    notice = notice_of(event, root)
    assert (notice["publicationId"], notice["contentId"], notice["publicationStateString"]) == (str(KEY), str(UUID(int=5)), state)
    assert notice["reason"] == ("the Event has ended" if state == "Completed" else "")


def test_what_only_the_product_does_has_none() -> None:
    assert CLOSED.event.TOPIC not in NOTED
