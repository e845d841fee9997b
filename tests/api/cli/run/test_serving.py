"""Starting and stopping like a person or a supervisor does: with real processes, signals and a real database."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.support.forks import Forked
from tests.support.postgres_homes import copied
from tests.support.postgres_homes import initialised as initialised
from tests.support.waiting import until
from workers.adapters.embedded_postgres import EmbeddedPostgres

PRODUCT = str(Path(__file__).with_name("tiny_product.py"))


class Running:
    def __init__(self, process: subprocess.Popen[str], screen: str) -> None:
        self.process = process
        self.screen = screen
        match = re.search(r"http://127\.0\.0\.1:\d+", screen)
        assert match is not None, screen
        self.address = match[0]

    def refuses(self) -> bool:
        """Return True if no connection is made, or if it is dropped at once during the closing of the socket."""
        try:
            httpx.get(self.address, timeout=60, verify=False)
        except httpx.TransportError:
            return True
        return False


def start(home: Path, **environment: str) -> subprocess.Popen[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MEDIALEDGER_")}
    settings = {"MEDIALEDGER_HOME": str(home), "MEDIALEDGER_PORT": "0"} | environment
    return Forked(PRODUCT, environment=inherited | settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def until_ready(process: subprocess.Popen[str]) -> Running:
    assert process.stdout is not None
    screen = ""
    for line in process.stdout:
        screen += line
        if "SIGTERM" in line:
            break
    return Running(process, screen)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    EmbeddedPostgres(tmp_path).stop()


@pytest.fixture
def running(home: Path, initialised: Path) -> Iterator[Running]:
    process = start(copied(initialised, home))
    yield until_ready(process)
    process.terminate()
    process.communicate(timeout=120)


def test_the_screen_says_where_everything_is(running: Running, home: Path) -> None:
    for path in ("/api", "/api/audit", "/docs", "/livez", "/readyz", "/metrics"):
        assert running.address + path in running.screen
    assert "PostgreSQL 18" in running.screen
    assert str(home / "admin-api-key") in running.screen
    assert running.screen.count("\n") < 24
    answer = httpx.get(running.address, verify=False)
    assert (answer.status_code, answer.text) == (200, "ok")
    assert "server" not in answer.headers
    assert "date" in answer.headers


def test_a_request_under_way_is_answered_before_the_process_ends(running: Running, home: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(httpx.get, running.address + "/held", timeout=120)
        until((home / "held").exists)
        running.process.send_signal(signal.SIGTERM)
        until(running.refuses)
        assert not answer.done()
        (home / "go").touch()
        assert answer.result().text == "ok"
    output, errors = running.process.communicate(timeout=120)
    assert (running.process.returncode, output.split(), errors) == (0, ["stopped"], "")
    assert (home / "stopped-in-order").exists()
    assert not EmbeddedPostgres(home).running


def test_a_stream_of_events_does_not_hold_up_the_end(running: Running, home: Path) -> None:
    with httpx.stream("GET", running.address + "/endless", timeout=120) as answer:
        pieces = answer.iter_bytes()
        assert next(pieces) == b": here\n\n"
        running.process.send_signal(signal.SIGTERM)
        assert list(pieces) == []
    output, errors = running.process.communicate(timeout=120)
    assert (running.process.returncode, output.split(), errors) == (0, ["stopped"], "")
    assert (home / "stopped-in-order").exists()


def test_a_second_interrupt_does_not_wait(running: Running, home: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(httpx.get, running.address + "/held", timeout=120)
        until((home / "held").exists)
        running.process.send_signal(signal.SIGINT)
        until(running.refuses)
        running.process.send_signal(signal.SIGINT)
        output, _ = running.process.communicate(timeout=120)
        assert answer.exception() is not None or answer.result().status_code == 500
    assert (running.process.returncode, "by force" in output) == (1, True)
    assert not EmbeddedPostgres(home).running


def test_a_held_ctrl_c_prints_one_line(running: Running, home: Path) -> None:
    def ended() -> bool:
        running.process.send_signal(signal.SIGINT)
        return running.process.poll() is not None

    until(ended)
    output, errors = running.process.communicate(timeout=120)
    assert running.process.returncode in (1, -signal.SIGINT), "the interpreter has no handler in its last moment"
    assert output.split("\n")[-2:] == ["stopped by force", ""]
    assert "Traceback" not in errors
    assert not EmbeddedPostgres(home).running


def test_a_second_process_on_the_same_home_is_refused(running: Running, home: Path) -> None:
    second = start(home)
    output, errors = second.communicate(timeout=120)
    assert (second.returncode, output) == (1, "")
    assert errors == f"medialedger is already running on this home (pid {running.process.pid}): {home}\n"
    assert httpx.get(running.address, verify=False).text == "ok"


def test_after_a_kill_the_next_start_takes_everything_over(running: Running, home: Path) -> None:
    running.process.kill()
    running.process.communicate()
    successor = start(home)
    try:
        assert httpx.get(until_ready(successor).address, verify=False).text == "ok"
    finally:
        successor.terminate()
        output, errors = successor.communicate(timeout=120)
    assert (successor.returncode, output.split(), errors) == (0, ["stopped"], "")
    assert not EmbeddedPostgres(home).running


def test_a_database_that_dies_is_started_again(running: Running, home: Path) -> None:
    postgres = EmbeddedPostgres(home)
    pid = int((postgres.data / "postmaster.pid").read_text().splitlines()[0])
    os.kill(pid, signal.SIGKILL)
    until(lambda: postgres.running and not (postgres.data / "postmaster.pid").read_text().startswith(f"{pid}\n"))
    running.process.terminate()
    assert running.process.wait(timeout=120) == 0


def test_a_port_in_use_is_one_line_and_nothing_is_started(running: Running, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    port = running.address.rpartition(":")[2]
    second = start(elsewhere, MEDIALEDGER_PORT=port)
    _, errors = second.communicate(timeout=120)
    assert second.returncode == 1
    assert errors == f"port {port} on 127.0.0.1 is in use; stop the other program or set MEDIALEDGER_PORT\n"
    assert not (elsewhere / "postgres").exists()


def test_a_database_that_is_not_there_is_one_line_without_its_password(home: Path) -> None:
    process = start(home, MEDIALEDGER_DATABASE_URL="postgresql://me:sekret@127.0.0.1:1/media")
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, output) == (1, "")
    assert errors.startswith("the database cannot be reached: ")
    assert errors.count("\n") == 1
    assert "sekret" not in errors
