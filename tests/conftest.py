"""Shared fixtures: a real PostgreSQL, emptied for every test that uses it, and the product on top of it."""

from __future__ import annotations

import gc

gc.disable()  # until all is imported and collected: `pytest_collection`

import os
import signal
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from importlib.util import find_spec
from io import StringIO
from ipaddress import ip_network
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import integers

from api.cli.run.limits import collect_seldom
from api.http.app import Application
from api.kernel.log import RequestLog
from api.wiring.core import Core, core
from tests.support.application import assembled, introduce
from tests.support.clock import HandClock
from tests.support.databases import KeptDatabases
from tests.support.distribution import pytest_collection_modifyitems as pytest_collection_modifyitems
from tests.support.kafka import kafka as kafka
from tests.support.kafka import topics_prefix as topics_prefix
from tests.support.postgres import database_url as database_url
from tests.support.postgres import migrated as migrated
from tests.support.postgres import migrated_template as migrated_template
from tests.support.postgres import postgres as postgres
from tests.support.product import FOLDER_OF_THE_RUN
from tests.support.programs import pytest_terminal_summary as pytest_terminal_summary
from tests.support.services import services
from workers.adapters.media_directory import MediaDirectory
from workers.adapters.outbound_http import GuardedClient

pytest_plugins = ["tests.support.long_forms", "tests.support.processes"]

_OWN_FOLDER = pytest.StashKey[str]()

settings.register_profile("any machine", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("any machine"), derandomize=False, max_examples=500)
settings.load_profile("any machine")


def hear_ignored_signals() -> None:
    """A shell has SIGINT ignored for what runs in its background, and `nohup` has SIGHUP: so would be all that tests start and
    signal, since an ignored signal is inherited. A handler is not: the run goes on after a hang-up, and its programs end."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """httpx imports sniffio for every request over ASGI, and Python searches for a missing module each time.

    The temporary folder belongs to this run alone. Any pytest that starts forbids other users to enter the folder that all runs
    share: root's PostgreSQL servers, which are processes of another user, would stop at their next checkpoint.

    """
    hear_ignored_signals()
    if config.getoption("thorough"):
        settings.load_profile("thorough")
    if find_spec("sniffio") is None:
        sys.modules["sniffio"] = None  # type: ignore[assignment]  # the import fails at once
    if config.option.basetemp is None:
        config.option.basetemp = mkdtemp(prefix="medialedger-tests-")
        config.stash[_OWN_FOLDER] = config.option.basetemp
    os.environ[FOLDER_OF_THE_RUN] = str(Path(config.option.basetemp).absolute())


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """The folder of a run that failed stays."""
    folder = session.config.stash.get(_OWN_FOLDER, None)
    if folder is not None and exitstatus == 0:
        rmtree(folder, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Freeze the collected tests, which stay until the end. The garbage collector would otherwise traverse them again and again,
    which takes a third of the time here. Later it runs as rarely as in the product."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        collect_seldom()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Hypothesis takes constants from the sources of all modules, which takes two seconds: once, before processes are forked."""

    @settings(derandomize=True, database=None)
    @given(integers())
    def draw(number: int) -> None:
        assert isinstance(number, int)

    if session.config.getoption("processes") > 1 and not session.config.option.collectonly:
        draw()


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--thorough"))


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """Restore the umask of the session, because commands of the product that a test calls change it for the whole process."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(scope="session")
async def kept_databases(migrated: tuple[str, str | None]) -> AsyncIterator[KeptDatabases]:
    conninfo, role = migrated
    databases = KeptDatabases(conninfo, role=role)
    yield databases
    await databases.end()


@pytest.fixture
async def inner(database_url: str, kept_databases: KeptDatabases, clock: HandClock) -> AsyncIterator[Core]:
    """The log and everything around it, without a web."""
    async with kept_databases.core(clock) as wired:
        yield wired


@pytest.fixture
async def second(database_url: str, migrated: tuple[str, str | None], clock: HandClock) -> AsyncIterator[Core]:
    """Another process on the same log."""
    wired = core(database_url, role=migrated[1], clock=clock)
    await wired.start()
    try:
        yield wired
    finally:
        await wired.stop()


@pytest.fixture
def request_log(inner: Core) -> RequestLog:
    return RequestLog(StringIO(), clock=inner.clock)


@pytest.fixture
async def outbound() -> AsyncIterator[GuardedClient]:
    """Return a client that may call the receivers that tests run."""
    client = GuardedClient([ip_network("127.0.0.0/8")])
    yield client
    await client.close()


@pytest.fixture
def media_root(tmp_path: Path) -> Path:
    root = tmp_path / "media"
    root.mkdir()
    return root


@pytest.fixture
def services_by_type(inner: Core, database_url: str, outbound: GuardedClient, media_root: Path) -> dict[Any, Any]:
    """Return the services that the endpoints get, by their types."""
    return services(inner, outbound=outbound, files=MediaDirectory(media_root))


@pytest.fixture
def application(inner: Core, services_by_type: dict[Any, Any], request_log: RequestLog) -> Application:
    return assembled(inner, services_by_type, request_log=request_log, registry=inner.registry)


@pytest.fixture
async def http(inner: Core, application: Application) -> AsyncIterator[httpx.AsyncClient]:
    """A caller with role admin, over ASGI in this process. It asks for plain bodies: their entity tags are the versions."""
    headers = {"API-KEY": await introduce(inner, "admin", "admin"), "Accept-Encoding": "identity"}
    transport = httpx.ASGITransport(app=application)
    async with httpx.AsyncClient(transport=transport, base_url="http://media.test", headers=headers) as client:
        yield client
