"""The eventsourcing library's own suites, on our log: any application that is built on the library can open it."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from eventsourcing.application import Application
from eventsourcing.domain import (
    BaseAggregate,
    CanCreateTimestamp,
    CanInitAggregate,
    CanMutateAggregate,
    MetaDomainEvent,
    event,
)
from eventsourcing.persistence import ApplicationRecorder, IntegrityError, StoredEvent
from eventsourcing.popo import POPOFactory
from eventsourcing.tests import persistence as suites
from eventsourcing.utils import get_topic

from domain.kernel.cause import Cause
from projections.log.recorder import LogRecorder
from tests.projections.log.helpers import rows, whole


class _OnOurLog:
    """An empty log for every test, and whole when the test is over."""

    url: str

    @pytest.fixture(autouse=True)
    def _empty_log(self, database_url: str) -> None:
        self.url = database_url

    def new_originator_id(self) -> str:
        return f"test:{uuid4()}"

    def create_recorder(self) -> LogRecorder:
        recorder = LogRecorder(self.url)
        case: Any = self
        case.addCleanup(whole, self.url)
        case.addCleanup(recorder.close)
        return recorder


class TestApplicationRecorder(_OnOurLog, suites.ApplicationRecorderTestCase[LogRecorder]):
    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestNonInterleavingNotificationIds(_OnOurLog, suites.NonInterleavingNotificationIDsBaseCase):
    pass


class Happened(CanMutateAggregate[str], CanCreateTimestamp, metaclass=MetaDomainEvent):
    """The library's own base events insist on UUIDs; this is how its users have text ids."""

    originator_id: str
    originator_version: int
    timestamp: datetime


class Began(Happened, CanInitAggregate[str]):
    originator_topic: str


class Kennel(BaseAggregate[str]):
    """An aggregate written by a user of the library, who knows nothing of medialedger."""

    class Event(Happened):
        pass

    class Opened(Event, Began):
        name: str

    @staticmethod
    def create_id(*_: Any, **__: Any) -> str:
        return f"kennel:{uuid4()}"

    def __init__(self, name: str) -> None:
        self.name = name
        self.dogs: list[str] = []

    @event("DogTakenIn")
    def take_in(self, dog: str) -> None:
        self.dogs.append(dog)


class LogFactory(POPOFactory):
    def application_recorder(self) -> ApplicationRecorder:
        return LogRecorder(self.env.get("LOG_URL") or "")


class Kennels(Application[str]):
    env = {"PERSISTENCE_MODULE": get_topic(LogFactory), "ORIGINATOR_ID_TYPE": "text"}  # noqa: RUF012 - as the library has it

    @property
    def opened(self) -> LogRecorder:
        assert isinstance(self.recorder, LogRecorder)
        return self.recorder


@pytest.fixture
def kennels(database_url: str) -> Any:
    application = Kennels(env={"LOG_URL": database_url})
    yield application
    application.opened.close()


def test_an_ordinary_application_of_the_library_saves_and_reads_back(kennels: Kennels, database_url: str) -> None:
    first, second = Kennel("north"), Kennel("south")
    first.take_in("Rex")
    kennels.save(first, second)
    again: Kennel = kennels.repository.get(first.id)
    assert (again.name, again.dogs, again.version) == ("north", ["Rex"], 2)
    again.take_in("Fido")
    recorded = kennels.save(again)
    assert [r.notification.id for r in recorded] == [4]
    latest: Kennel = kennels.repository.get(first.id)
    before: Kennel = kennels.repository.get(first.id, version=1)
    assert (latest.dogs, before.dogs) == (["Rex", "Fido"], [])
    assert [item.id for item in kennels.notification_log.select(1, 10)] == [1, 2, 3, 4]
    assert whole(database_url) == 4


def test_a_stale_save_is_refused_completely(kennels: Kennels, database_url: str) -> None:
    kennel = Kennel("north")
    kennels.save(kennel)
    mine: Kennel = kennels.repository.get(kennel.id)
    theirs: Kennel = kennels.repository.get(kennel.id)
    theirs.take_in("Rex")
    kennels.save(theirs)
    mine.take_in("Fido")
    with pytest.raises(IntegrityError):
        kennels.save(Kennel("other"), mine)
    assert whole(database_url) == 2


def test_events_written_by_the_library_have_a_cause(kennels: Kennels, database_url: str) -> None:
    kennels.save(Kennel("north"))
    cause = Cause.by("vet", correlation_id="visit-7")
    kennels.opened.insert_events([StoredEvent("kennel:x", 1, "t", b"{}"), StoredEvent("kennel:x", 2, "t", b"{}")], cause=cause)
    stored_rows = rows(
        database_url, "SELECT metadata->>'actor', metadata->>'correlation_id', event_id FROM events ORDER BY position"
    )
    assert [row[0] for row in stored_rows] == ["eventsourcing", "vet", "vet"]
    assert stored_rows[1][1] == "visit-7"
    assert len({row[2] for row in stored_rows}) == 3
