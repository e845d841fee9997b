"""The master key is replaced while the product works: two logins, two machines, processes of the API and of the workers."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from shutil import copy
from uuid import UUID

import psycopg
import pytest
from lxml import etree

from domain.kernel.encryption import SecretCipher
from faults.receivers import Receiver
from tests.api.media.test_configuration_secrecy import CHANNEL_TEXT
from tests.api.speke.documents import WIDEVINE, document_1
from tests.e2e.processes import alive, children
from tests.e2e.test_webhooks import JSON_PATCH, all_arrived, due
from tests.support.postgres import Logins, two_logins
from tests.support.product import Product, Products, client
from tests.support.waiting import until

KEY = "the-admin-key-of-these-tests"
XML = {"Content-Type": "application/xml"}
NAMESPACES = {"pskc": "urn:ietf:params:xml:ns:keyprov:pskc"}


@pytest.fixture
def logins(postgres: str) -> Iterator[Logins]:
    with two_logins(postgres, "rotated") as made:
        yield made


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver("receiver", dice=random.Random(5))
    await made.start()
    yield made
    await made.stop()


def content_key(product: Product, content: str) -> str:
    with client(product, KEY) as http:
        answer = http.post("/admin/speke", content=document_1(WIDEVINE, content_id=content), headers=XML)
    assert answer.status_code == 200, (answer.status_code, answer.text)
    return etree.fromstring(answer.content).findtext(".//pskc:PlainValue", "", NAMESPACES)


class Work(threading.Thread):
    """The work during a rotation: content keys are issued at one machine and requested again at both, secrets are stored, and an
    Event changes, which a webhook reports.

    It ends at the first failure.
    """

    def __init__(self, machines: list[Product], event: str) -> None:
        super().__init__(daemon=True)
        self._machines = machines
        self._event = event
        self.given: dict[str, str] = {}
        self.failure: BaseException | None = None
        self.over = threading.Event()

    def run(self) -> None:
        try:
            for number in count():
                if self.over.is_set():
                    return
                self._turn(number)
                self.over.wait(0.05)
        except BaseException as failure:
            self.failure = failure

    def _turn(self, number: int) -> None:
        here, there = self._machines[number % 2], self._machines[(number + 1) % 2]
        self.given[f"film-{number}"] = content_key(here, f"film-{number}")
        asked = random.Random(number).choice(list(self.given))
        assert content_key(there, asked) == self.given[asked], asked
        with client(there, KEY) as http:
            channel = {"name": f"channel {number}", "configurationJson": CHANNEL_TEXT}
            http.post("/api/channel/", json=channel).raise_for_status()
            step = [{"op": "replace", "path": "/title", "value": f"title {number}"}]
            http.patch(f"/api/event/{self._event}", json=step, headers=JSON_PATCH).raise_for_status()

    def goes_on(self) -> None:
        """Wait for some more turns from now on."""
        before = len(self.given)
        until(lambda: self.failure is not None or len(self.given) > before + 3)
        assert self.failure is None, self.failure


async def test_nothing_is_lost_and_nothing_is_restarted(
    started: Products, logins: Logins, tmp_path: Path, receiver: Receiver
) -> None:
    await asyncio.to_thread(_rotate_at_work, started, logins, tmp_path, receiver)


def _rotate_at_work(started: Products, logins: Logins, tmp_path: Path, receiver: Receiver) -> None:
    first_home, second_home = tmp_path / "one", tmp_path / "two"
    both = {"database_url": logins.product, "owner_database_url": logins.owner, "admin_api_key": KEY}
    both |= {"outbound_allow": "127.0.0.0/8"}
    first = started.start(first_home, api_processes="2", worker_processes="1", **both).until_ready()
    second_home.mkdir(mode=0o700)
    copy(first_home / "master.key", second_home)
    second = started.start(second_home, "api", **both).until_ready()
    processes = [*children(first, "api"), *children(first, "workers"), second.process.pid]
    assert len(processes) == 4

    with client(first, KEY) as http:
        made = http.post("/api/webhook/", json={"webhookUrl": receiver.url, "headers": ["X-Token: abc"]}).raise_for_status().json()
        receiver.webhook, receiver.secret = UUID(made["id"]), b64decode(made["secret"].removeprefix("whsec_"))
        event = http.post("/api/event/", json={"title": "Final"}).raise_for_status().json()["id"]
    work = Work([first, second], event)
    work.start()
    work.goes_on()

    command = started.start(first_home, f"keys rotate --new-key-file {tmp_path / 'new.key'}", **both)
    until(lambda: f"waiting for process {second.process.pid} on " in command.errors or command.process.poll() is not None)
    work.goes_on()
    assert command.process.poll() is None, "the other machine has the old key only"
    for name in ("master.key.previous", "master.key"):
        copy(first_home / name, second_home / f"{name}.new")
        os.replace(second_home / f"{name}.new", second_home / name)
    work.goes_on()
    assert command.ended() == 0, command.errors
    lines = [line for line in command.errors.splitlines() if line.startswith("waiting for process ")]
    assert len(lines) == len(set(lines)), "each is said once"
    work.goes_on()
    work.over.set()
    work.join()
    assert work.failure is None, work.failure

    new = SecretCipher((tmp_path / "new.key").read_bytes()).key_id
    with psycopg.connect(logins.owner) as connection:
        counts = connection.execute("SELECT key_id, count(*) FROM vault GROUP BY key_id").fetchall()
        kinds = connection.execute("SELECT DISTINCT split_part(owner, ':', 1) FROM vault").fetchall()
    assert [key for key, _ in counts] == [new]
    assert {kind for (kind,) in kinds} >= {"content_key", "webhook", "channel", "checkpoint_key"}
    assert all(map(alive, processes)), "no process was started again"
    with client(first, KEY) as http:
        wanted = due(http, receiver)
        assert http.get("/readyz").json()["unreadableSecrets"] == 0
    asyncio.run(all_arrived(receiver, wanted))
    assert (receiver.altered, receiver.unsigned) == (0, 0)
    assert not (first_home / "master.key.previous").exists()

    (second_home / "master.key.previous").unlink()
    for product in (first, second):
        product.kill()
    again = started.start(second_home, "api", **both).until_ready()
    assert {content: content_key(again, content) for content in work.given} == work.given, "also with the new key alone"
