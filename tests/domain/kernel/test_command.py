"""Commands that are made from decisions. mypy checks their arguments: a superfluous `type: ignore` below is an error of mypy."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Self, assert_type
from uuid import UUID

import pytest

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.command import Command, CreationCommand, DecisionCommand, creation, decision
from domain.kernel.errors import NotFound, PlanOutdated
from tests.domain.kernel.test_encryption import sealed
from tests.domain.scenario import NOW

KEY = UUID(int=7)


class Lamp(AggregateRoot):
    """An aggregate that notes its calls."""

    KIND: ClassVar[str] = "lamp"

    calls: list[Any]

    @creation
    @classmethod
    def hang(cls, key: UUID, at: datetime, /, place: str, *, watts: int = 5) -> Self:
        lamp = cls.__new__(cls)
        lamp.__base_init__(cls.stream(key), 1, at)
        lamp.calls = [(place, watts)]
        return lamp

    @decision
    def dim(self, at: datetime, /, percent: int, *, slowly: bool = False) -> None:
        """Give less light."""
        if percent > 100:
            raise NotFound(self.KIND, self.key)
        self.calls.append((at, percent, slowly))

    @decision(ignore_missing_links=True)
    def restore(self, at: datetime, /) -> None:
        self.calls.append(at)


class Torch(Lamp):
    """A lamp of another kind."""

    KIND: ClassVar[str] = "torch"


@pytest.fixture
def lamp() -> Lamp:
    return Lamp.hang(KEY, NOW, "hall", watts=7)


def test_a_decision_is_made_at_the_time_of_the_command(lamp: Lamp) -> None:
    command = Lamp.dim.on(KEY, 30, slowly=True)
    assert (command.kind(), command.stream, command.creates, list(command.sealed)) == (Lamp, f"lamp:{KEY}", False, [])
    assert command.decide(lamp, at=NOW) is lamp
    lamp.dim(NOW, 40)
    assert lamp.calls[1:] == [(NOW, 30, True), (NOW, 40, False)]


def test_a_command_is_for_the_class_that_it_is_made_from() -> None:
    assert Torch.dim.on(KEY, 30).stream == f"torch:{KEY}"
    assert Torch.hang.on(KEY, "hall").decide(None, at=NOW).id == f"torch:{KEY}"


def test_a_missing_aggregate_is_not_found() -> None:
    with pytest.raises(NotFound):
        Lamp.dim.on(KEY, 30).decide(None, at=NOW)


def test_an_aggregate_is_created_once(lamp: Lamp) -> None:
    command = Lamp.hang.on(KEY, "cellar")
    assert command.creates
    assert command.decide(None, at=NOW).calls == [("cellar", 5)]
    assert command.decide(lamp, at=NOW).calls == [("hall", 7)]


def test_a_plan_is_made_again_if_the_aggregate_is_gone_or_has_another_version(lamp: Lamp) -> None:
    planned, seen = Lamp.dim.on(KEY, 30).as_planned(), Lamp.dim.on(KEY, 30).as_planned(2)
    for command, root in ((planned, None), (seen, None), (seen, lamp), (Lamp.dim.on(KEY, 101).as_planned(), lamp)):
        with pytest.raises(PlanOutdated):
            command.decide(root, at=NOW)
    for command in (planned, Lamp.dim.on(KEY, 30).as_planned(1)):
        assert command.decide(lamp, at=NOW) is lamp


def test_a_command_has_the_secrets_that_its_arguments_refer_to() -> None:
    secrets = [sealed()]
    assert Lamp.dim.on(KEY, 30).with_secrets(secrets).sealed == secrets
    assert Lamp.hang.on(KEY, "hall").with_secrets(secrets).sealed == secrets


def test_a_decision_may_accept_links_to_missing_targets() -> None:
    assert Lamp.restore.on(KEY).ignore_missing_links
    assert not Lamp.dim.on(KEY, 30).ignore_missing_links


def test_equal_commands_are_equal() -> None:
    assert Lamp.dim.on(KEY, 30) == Lamp.dim.on(KEY, 30)
    assert hash(Lamp.dim.on(KEY, 30, slowly=True)) == hash(Lamp.dim.on(KEY, 30, slowly=True))
    others: list[Command[Any]] = [
        Lamp.dim.on(KEY, 31),
        Torch.dim.on(KEY, 30),
        Lamp.restore.on(KEY),
        Lamp.dim.on(KEY, 30).as_planned(),
    ]
    assert Lamp.dim.on(KEY, 30) not in others


def test_the_representation_of_a_command_shows_no_argument() -> None:
    assert repr(Lamp.hang.on(KEY, "a secret place")) == f"<Lamp.hang on lamp:{KEY}>"


if TYPE_CHECKING:

    def checked_by_mypy(lamp: Lamp, kind: type[Lamp]) -> None:
        assert_type(Lamp.dim.on(KEY, 30, slowly=True), DecisionCommand[Lamp])
        assert_type(Torch.dim.on(KEY, 30), DecisionCommand[Torch])
        assert_type(kind.dim.on(KEY, 30), DecisionCommand[Lamp])
        assert_type(Torch.hang.on(KEY, "hall"), CreationCommand[Torch])
        assert_type(Torch.hang(KEY, NOW, "hall"), Torch)
        lamp.dim(NOW, 30)
        lamp.dim(30)  # type: ignore[call-arg, arg-type]
        Lamp.dim.on(KEY)  # type: ignore[call-arg]
        Lamp.dim.on(KEY, "30")  # type: ignore[arg-type]
        Lamp.dim.on(KEY, 30, quickly=True)  # type: ignore[call-arg]
        Lamp.dim.on(None, 30)  # type: ignore[arg-type]
        Lamp.hang.on(KEY)  # type: ignore[call-arg]
        Lamp.hang.on(7, "hall")  # type: ignore[arg-type]
