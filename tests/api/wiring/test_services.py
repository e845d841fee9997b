"""Every service of the API, of the workers and of the commands can be made: a missing provider is found here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from api.kernel.authentication import Authenticate
from api.wiring.assembly import services_of
from api.wiring.catalogue import WORKER_ROLES, notified, owners
from api.wiring.container import Container
from api.wiring.core import core
from api.wiring.rooms import ROOMS
from api.wiring.services import PROVIDERS, services_by_type
from api.wiring.settings import Settings
from api.wiring.siblings import Alone, Siblings
from api.wiring.workers import workers_of
from domain.kernel.encryption import KeyRing
from workers.kernel.worker import SharedWorker
from workers.origin.live_origin import LiveOrigin
from workers.wiring import Workers

ROOT = Path(__file__).parents[3]
BROKER = {"MEDIALEDGER_KAFKA_BOOTSTRAP_SERVERS": "broker.example:9092"}


def container(home: Path, **environment: str) -> Container:
    """Return the container of a process whose database is never reached."""
    inner = core("host=nowhere.invalid", role=None, ring=KeyRing(bytes(32)))
    return services_of(inner, Settings.from_env({"MEDIALEDGER_HOME": str(home), **environment}))


async def test_every_service_of_the_api_is_made(tmp_path: Path) -> None:
    services = container(tmp_path)
    services.bind(PROVIDERS)
    for kind, service in {Authenticate: None, LiveOrigin: None, Siblings: Alone(services[CollectorRegistry])}.items():
        services.give(kind, service)
    assert len(services_by_type(services)) > 100


@pytest.mark.parametrize("name", WORKER_ROLES)
async def test_every_worker_role_is_made(tmp_path: Path, name: str) -> None:
    groups = made(workers_of(container(tmp_path, **BROKER), [name]), quiet=False)
    assert groups[-1], "the role has workers"
    assert all(isinstance(worker, SharedWorker) for group in groups[:-1] for worker in group)


def made(workers: Workers, *, quiet: bool) -> Any:
    return workers._make(quiet=quiet)


async def test_roles_of_a_process_share_workers_and_a_restart_makes_others(tmp_path: Path) -> None:
    workers = workers_of(container(tmp_path), ["controller", "work"])
    shared = [type(worker).__name__ for [worker] in made(workers, quiet=False)[:-1]]
    assert shared == ["ConsumerFactory", "StepProcessPool", "StepLogWriter", "TranscoderCheck"]
    first, second = (made(workers, quiet=False)[0][0] for _ in range(2))
    assert first is not second


async def test_while_it_is_quiet_only_inner_roles_are_made_and_they_read_no_kafka(tmp_path: Path) -> None:
    workers = workers_of(container(tmp_path, **BROKER), ["lists", "webhooks", "relay"])
    assert workers.names == ("lists", "webhooks", "relay")
    [factory], loud = made(workers, quiet=False)
    [quiet_factory], quiet = made(workers, quiet=True)
    assert len(quiet) < len(loud)
    assert [each._shared is each.log for each in (factory, quiet_factory)] == [False, True]
    assert [type(each._shared._make_source()).__name__ for each in (factory, quiet_factory)] == ["FallbackFeed", "LogFeed"]


async def test_a_role_that_needs_kafka_is_omitted_without_a_broker(tmp_path: Path) -> None:
    assert workers_of(container(tmp_path), ["lists", "relay"]).names == ("lists",)


def test_what_rooms_name_by_paths_exists() -> None:
    assert {*notified()} >= {"event", "asset", "category"}
    assert owners().keys() == {kind for room in ROOMS for kind in room.owners}
    for room in ROOMS:
        paths = [*room.routes, *room.past_states, *room.followups.values(), *filter(is_path, room.services.values())]
        for path in (*paths, *filter(is_path, room.services)):
            assert resolve_name(path) is not None, path


def is_path(each: object) -> bool:
    return isinstance(each, str)


def used_in_commands() -> Iterator[str]:
    """Yield the names of the types that commands get from a container."""
    for file in (ROOT / "api" / "cli").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
                owner = ast.unparse(node.func.value)
                if (owner in ("container", "services") or owner.startswith("services_of(")) and node.args:
                    name = ast.unparse(node.args[0])
                    if name.isidentifier() and name[0].isupper():
                        yield f"{file.relative_to(ROOT).with_suffix('').as_posix().replace('/', '.')}:{name}"


async def test_every_service_of_the_commands_is_made(tmp_path: Path) -> None:
    services, paths = container(tmp_path), sorted(used_in_commands())
    assert paths
    for path in paths:
        assert services.get(resolve_name(path)) is not None, path
