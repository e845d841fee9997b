"""The imports of the product's processes: only those parts of rooms that their roles need. Each case is a separate process."""

from __future__ import annotations

import subprocess
import sys

import pytest

_OF_WORKERS = (
    "workers.job.scheduler",
    "workers.job.controller",
    "workers.job.job_worker",
    "workers.job.step_executor",
    "workers.webhook.fanout",
    "workers.webhook.callbacks.fanout",
    "workers.webhook.sender.sender",
    "workers.adapters.kafka.relay",
)
_LARGE_AND_RARE = ("kafka", "boto3", "botocore", "ttconv")
"""A broker and a bucket, which most installations do not have, and a reader of captions, which runs in steps."""
_OF_THE_API = ("api.media", "api.engine", "api.speke", "api.audit", "api.http", "uvicorn")

_BUILD = "from api.wiring.product import build"
_WORKERS = """
import asyncio

from api.wiring.assembly import services_of
from api.wiring.catalogue import WORKER_ROLES
from api.wiring.core import core
from api.wiring.settings import Settings
from api.wiring.workers import workers_of
from domain.kernel.encryption import KeyRing


async def make():
    inner = core("host=nowhere", role=None, ring=KeyRing(bytes(32)))
    container = services_of(inner, Settings.from_env({"MEDIALEDGER_HOME": "/nonexistent"}))
    return container.call(WORKER_ROLES["webhooks"].make), workers_of(container, ["webhooks"])


assert asyncio.run(make())[0], "the role has workers"
"""


def imported(program: str) -> set[str]:
    """Return the modules that a program has imported at its end."""
    code = f"{program}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def below(modules: set[str], *names: str) -> set[str]:
    return {module for module in modules for name in names if module == name or module.startswith(f"{name}.")}


@pytest.fixture(scope="module")
def api_process() -> set[str]:
    return imported(_BUILD)


@pytest.fixture(scope="module")
def webhooks_process() -> set[str]:
    return imported(_WORKERS)


def test_the_api_imports_no_worker(api_process: set[str]) -> None:
    assert "api.media.event.routes" in api_process
    assert below(api_process, *_OF_WORKERS) == set()


def test_the_api_starts_without_packages_that_it_seldom_needs(api_process: set[str]) -> None:
    assert below(api_process, *_LARGE_AND_RARE) == set()


def test_a_worker_role_imports_neither_the_api_nor_the_other_roles(webhooks_process: set[str]) -> None:
    assert "workers.webhook.fanout" in webhooks_process
    assert (
        below(webhooks_process, *_OF_THE_API, "workers.job", "workers.webhook.callbacks", "workers.webhook.sender.sender") == set()
    )


@pytest.mark.parametrize(
    ("what", "left_out"),
    [
        (
            "import click; from api.cli.main import command_line; command_line.get_help(click.Context(command_line))",
            ("pydantic", "psycopg", "asyncio", "rich", "uvloop", "http", "projections", "workers"),
        ),
        (
            "import api.cli.main, api.cli.remote.contexts, api.cli.commands.jobs, api.cli.commands.events, api.cli.commands.audit, "
            "api.cli.commands.webhooks, api.cli.commands.consumers, api.cli.commands.client, api.cli.commands.publish",
            ("pydantic", "psycopg", "asyncio", "rich", "uvloop", "eventsourcing", "projections", "api.wiring.settings"),
        ),
        (
            "import api.cli.local.sessions, api.cli.local.schema, api.cli.local.audit",
            ("fastapi", "boto3", "kafka", "api.media", "api.wiring.product"),
        ),
    ],
)
def test_a_command_imports_only_what_it_needs(what: str, left_out: tuple[str, ...]) -> None:
    assert below(imported(what), *left_out) == set()
