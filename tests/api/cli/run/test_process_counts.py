"""The number of processes of `medialedger up`, and the moment when all of them are ready."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from api.cli.run.supervisor import ProcessPlace, Shared
from api.cli.run.up import process_counts
from api.wiring.settings import Settings


@pytest.mark.parametrize(
    ("environment", "cores", "counts"),
    [
        ({}, 1, (1, 0)),
        ({}, 2, (1, 1)),
        ({}, 4, (3, 1)),
        ({}, 64, (7, 1)),
        ({"MEDIALEDGER_PROCESSES": "1"}, 4, (1, 0)),
        ({"MEDIALEDGER_PROCESSES": "12"}, 4, (11, 1)),
        ({"MEDIALEDGER_PROCESSES": ""}, 2, (1, 1)),
        ({"MEDIALEDGER_PROCESSES": "4", "MEDIALEDGER_API_PROCESSES": "2"}, 4, (2, 0)),
        ({"MEDIALEDGER_API_PROCESSES": "1"}, 4, (1, 0)),
        ({"MEDIALEDGER_WORKER_PROCESSES": "2"}, 4, (1, 2)),
        ({"MEDIALEDGER_WORKER_PROCESSES": "0"}, 4, (1, 0)),
    ],
)
async def test_the_settings_or_the_cores_decide(environment: dict[str, str], cores: int, counts: tuple[int, int]) -> None:
    assert await process_counts(Settings.from_env(environment), cores=cores) == counts


async def test_a_database_of_your_own_gets_no_more_processes_than_it_has_connections_for(database_url: str) -> None:
    environment = {"MEDIALEDGER_DATABASE_URL": database_url, "MEDIALEDGER_DATABASE_CONNECTIONS": "1000"}
    assert await process_counts(Settings.from_env(environment), cores=4) == (1, 0)
    demanded = Settings.from_env({**environment, "MEDIALEDGER_PROCESSES": "4"})
    assert await process_counts(demanded, cores=4) == (3, 1), "the start refuses it with a reason"


@dataclass
class Part:
    """A process that counts how often it is informed that all are ready."""

    place: ProcessPlace
    informed: int = 0

    def tell_complete(self) -> None:
        self.informed += 1


def test_processes_are_informed_when_each_place_has_been_ready() -> None:
    api, workers = (Part(ProcessPlace(kind, 1)) for kind in ("api", "workers"))
    shared: Any
    with closing(Shared(1, 1)) as shared:
        shared.running += [api, workers]
        shared.set_ready(api.place)
        shared.set_ready(api.place)  # it ended and was started again
        assert (api.informed, workers.informed) == (0, 0)
        shared.set_ready(workers.place)
        assert (api.informed, workers.informed) == (1, 1)
        again = Part(ProcessPlace("api", 1))
        shared.running[0] = again
        shared.set_ready(again.place)
        assert again.informed == 1
