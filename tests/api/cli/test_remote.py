"""Commands from a laptop: with an address and a key, against a served product, without a database."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from api.cli.main import main
from tests.api.product_thread import ProductThread
from tests.support.postgres import empty

Said = tuple[int, str, str]
Call = Callable[..., Said]


@pytest.fixture(scope="module")
def product(migrated: tuple[str, str | None]) -> Iterator[ProductThread]:
    conninfo, role = migrated
    empty(conninfo)
    product = ProductThread(conninfo, role)
    product.start()
    product.ready.wait()
    yield product
    if product.server is not None:
        product.server.should_exit = True
    product.join()


@pytest.fixture
def http(product: ProductThread) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=product.address, headers={"API-KEY": product.key, "client": "admin"}, timeout=60) as client:
        yield client


@pytest.fixture
def call(product: ProductThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path / "no-home"))
    monkeypatch.setenv("MEDIALEDGER_URL", product.address)
    monkeypatch.setenv("MEDIALEDGER_API_KEY", product.key)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def called(*words: object) -> Said:
        code = main(list(map(str, words)))
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return called


def test_events_are_listed_shown_and_compared(call: Call, http: httpx.Client) -> None:
    event = http.post("/api/event/", json={"title": "Semi\x1b[2J", "refId": "match/17"}).json()["id"]
    http.post("/api/event/", json={"id": event, "title": "Final"})
    assert call("events", "list", "--search", "nothing") == (0, "", "no Events\n")
    code, shown, _ = call("events", "list")
    assert (code, shown.splitlines()[1].split()[0], "Final" in shown) == (0, event, True)
    assert json.loads(call("events", "show", "match/17", "--json")[1])["id"] == event
    was = call("events", "show", event, "--at", "v1")[1]
    assert r"Semi\x1b[2J" in was
    assert r"Semi\x1b[2J" in call("events", "diff", "match/17", "v1", "v2")[1]
    assert call("events", "history", event)[1].count("  by admin  in ") == 2
    code, _, err = call("events", "show", event, "--at", "v9")
    assert (code, "has no version 9" in err) == (1, True)
    assert call("events", "show", "unknown") == (1, "", "medialedger: the Event unknown does not exist\n")


def test_a_job_is_submitted_shown_and_controlled(call: Call) -> None:
    accepted = call("jobs", "submit", "probe_media", "content_id=film", "file=a.mp4")
    job = int(accepted[1].removeprefix("job "))
    assert call("jobs", "pause", job) == (0, f"job {job} is paused\n", "")
    assert call("jobs", "break", job, "--yes") == (0, f"job {job} is broken\n", "")
    assert call("jobs", "resume", job) == (0, f"job {job} is queued\n", "")
    assert call("jobs", "show", job)[1].startswith(f"job {job}  queued  probe_media of admin\n")
    assert f"job {job} is rerun as job" in call("jobs", "rerun", job, "--yes")[1]
    assert "admin broke the job" in call("jobs", "logs", job)[1]
    code, _, err = call("jobs", "submit", "probe_media", "content_id=film", "fil=a.mp4")
    assert (code, "parameters.fil: is not a parameter of this workflow; did you mean file?" in err) == (1, True)


def test_webhooks_are_found_by_the_beginning_of_their_ids(call: Call, http: httpx.Client) -> None:
    webhook = http.post("/api/webhook/", json={"webhookUrl": "http://127.0.0.1:9/"}).json()["id"]
    assert webhook in call("webhooks", "list")[1]
    code, shown, _ = call("webhooks", "test", webhook[:8], "--json")
    assert (code, json.loads(shown)["delivered"]) == (1, False)
    assert call("webhooks", "deliveries", webhook[:8]) == (0, "", "no deliveries\n")
    [health] = json.loads(call("webhooks", "health", "--json")[1])
    assert (health["webhookId"], health["circuit"]) == (webhook, "closed")
    assert call("webhooks", "deliveries", "--failed") == (0, "", "no deliveries\n")
    assert "--event needs a WEBHOOK" in call("webhooks", "deliveries", "--event", webhook)[2]
    assert call("webhooks", "deliveries", "zz")[2] == "medialedger: no webhook has the id zz\n"


def test_the_log_is_read_and_taken_away(call: Call, tmp_path: Path) -> None:
    _, shown, _ = call("audit", "events", "--type", "client.registered", "-o", "ndjson")
    assert [json.loads(line)["id"] for line in shown.splitlines()] == ["admin"]
    assert call("audit", "events", "--actor", "nobody") == (0, "", "no such events\n")
    code, shown, _ = call("audit", "verify")
    assert (code, shown.startswith("the log is intact: ")) == (0, True)
    path = tmp_path / "log.ndjson"
    assert call("audit", "export", "--output", path)[0] in (0, 1)  # 1 before the first checkpoint
    assert not path.with_name(".log.ndjson.part").exists()


def test_clients_and_destinations(call: Call) -> None:
    key = call("client", "add", "playout", "--role", "viewer")[1].strip()
    assert key
    listed = json.loads(call("client", "list", "--json")[1])
    identity = next(client for client in listed if client["name"] == "playout")["keys"][0]["keyId"]
    assert key not in call("client", "list")[1]
    assert call("client", "revoke", "playout", identity[:6], "--yes") == (0, "revoked\n", "")
    assert call("client", "revoke", "playout", "--yes") == (0, "revoked\n", "")
    assert call("destination", "list") == (0, "", "no destinations\n")


def test_a_wrong_key_is_one_line(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDIALEDGER_API_KEY", "wrong")
    code, out, err = call("events", "list")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "The API key is not valid" in err
    assert "wrong" not in err


def test_status_tells_what_the_api_tells(call: Call) -> None:
    code, shown, _ = call("status", "--json")
    assert code in (0, 4)
    assert [finding["name"] for finding in json.loads(shown)] == [
        "product",
        "database",
        "log",
        "disks",
        "processes",
        "consumers",
        "jobs",
        "deliveries",
        "sessions",
    ]


def test_what_is_followed_ends_on_ctrl_c(product: ProductThread, tmp_path: Path) -> None:
    """The first entries are printed at once; then the command waits, and its end is no error."""
    environment = {"MEDIALEDGER_URL": product.address, "MEDIALEDGER_API_KEY": product.key, "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "api.cli.main", "audit", "events", "--follow", "-o", "ndjson"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as following:
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["position"] >= 1
        following.send_signal(signal.SIGINT)
        try:
            _, err = following.communicate(timeout=60)
        finally:
            following.kill()
    assert (following.returncode, err) == (0, "")


def test_only_a_person_at_the_machine_names_another_owner(call: Call) -> None:
    submitted = call("jobs", "submit", "probe_media", "content_id=film", "file=a.mp4", "--client", "studio")
    assert submitted == (1, "", "medialedger: client: must be the client of the header\n")
    assert call("workflows", "show", "probe_media")[1].startswith("probe_media: ")
