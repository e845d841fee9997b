"""Forks of a process that has imported the product are as separate as newly started processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from tests.conftest import hear_ignored_signals
from tests.e2e.processes import alive
from tests.support.forks import Forked
from tests.support.waiting import first_line, until
from workers.kernel.fork_server import next_start

NUMBERS = """
import os, random, secrets, ssl, uuid
from cryptography.fernet import Fernet
from domain.kernel.ids import new_id
print(uuid.uuid4(), random.random(), secrets.token_hex(), ssl.RAND_bytes(16).hex(), Fernet.generate_key(), new_id())
"""
SURROUNDINGS = """
import asyncio, os, signal, sys, threading
print(os.getsid(0) == os.getpid(), os.environ, sys.argv[1:], sys.stdin.read())
print(threading.active_count(), sorted(os.listdir("/proc/self/fd")))
blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
print("complaint", *blocked, file=sys.stderr)
sys.exit(3)
"""
WAITS = """
import signal
print("here", flush=True)
signal.pause()
"""


def run(folder: Path, text: str, *arguments: str, **environment: str) -> Forked:
    script = folder / "script.py"
    script.write_text(text)
    pipe = subprocess.PIPE
    return Forked(str(script), *arguments, environment=environment, stdin=pipe, stdout=pipe, stderr=pipe)


def test_no_two_processes_draw_the_same_numbers(tmp_path: Path) -> None:
    drawn = [run(tmp_path, NUMBERS).communicate(timeout=120)[0].split() for _ in range(3)]
    assert [len(numbers) for numbers in drawn] == [6, 6, 6]
    assert len({number for numbers in drawn for number in numbers}) == 18


def test_a_process_has_its_own_session_environment_arguments_and_streams(tmp_path: Path) -> None:
    process = run(tmp_path, SURROUNDINGS, "--one", "two", NAME="value")
    output, complaints = process.communicate("typed", timeout=120)
    expected = "True environ({'NAME': 'value'}) ['--one', 'two'] typed\n1 ['0', '1', '2', '3']\n"  # 3 is the listing's own
    assert (output, complaints, process.returncode) == (expected, "complaint\n", 3)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGKILL])
def test_a_signal_ends_one_process_alone(number: signal.Signals, tmp_path: Path) -> None:
    first, other = run(tmp_path, WAITS), run(tmp_path, WAITS)
    assert (first_line(first), first_line(other)) == ("here", "here")
    first.send_signal(number)
    assert first.wait(timeout=120) == -number
    assert other.poll() is None
    other.kill()
    assert other.wait(timeout=120) == -signal.SIGKILL
    assert (first.communicate()[0], other.communicate()[0]) == ("", "")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_what_tests_start_hears_signals_also_in_a_run_that_ignores_them(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        hear_ignored_signals()
        if number == signal.SIGHUP:
            os.kill(os.getpid(), number)  # the run goes on
        sleeper = subprocess.Popen(["/bin/sleep", "600"])
        sleeper.send_signal(number)
        assert sleeper.wait(timeout=120) == -number
    finally:
        signal.signal(number, before)


def test_the_end_of_a_fork_server_ends_its_processes(tmp_path: Path) -> None:
    process = run(tmp_path, WAITS)
    assert first_line(process) == "here"
    server = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(server, signal.SIGKILL)
    assert process.wait(timeout=120) == -signal.SIGKILL
    until(lambda: not alive(process.pid))
    process.communicate()


def test_a_process_with_several_threads_is_not_forked() -> None:
    orders, closed = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    closed.close()
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        with orders, pytest.raises(RuntimeError, match="several threads"):
            next_start(orders)
    finally:
        done.set()
        thread.join()
