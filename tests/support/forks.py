"""Processes of the product that are forked, not started anew: a twentieth of the processor time of a start.

The processes of a test run share a fork server, which `start_fork_server` starts before they are forked. In a run of one process
the first test that needs it starts it. Where the start itself is tested, or another source tree is run, a test starts an
interpreter.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Forked(subprocess.Popen[str]):
    """`medialedger` with these arguments, or a script. Used like any other `Popen`, with its own environment, pipes and session."""

    _status: socket.socket
    _watched: int

    def __init__(
        self,
        *arguments: str,
        environment: Mapping[str, str],
        stdin: Any = None,
        stdout: Any,
        stderr: Any,
        files: tuple[int, int] | None = None,
    ) -> None:
        """`files`: its soft and hard limit of open files from the start; None: those of this process."""
        self._files = files or resource.getrlimit(resource.RLIMIT_NOFILE)
        streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
        super().__init__(arguments, cwd=ROOT, env=environment, text=True, **streams)

    def _execute_child(self, *given: Any) -> None:
        """Start the child: the part of `Popen` between making its pipes and reading them."""
        read_in, _, _, write_out, _, write_err = pipes = given[10:16]
        streams = [default if each == -1 else each for default, each in enumerate((read_in, write_out, write_err))]
        order = {
            "arguments": self.args,
            "environment": dict(given[6]),
            "directory": str(given[5]),
            "files": self._files,
        }
        self._status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            message, passed = json.dumps(order).encode(), [theirs.fileno(), *streams]
            try:
                socket.send_fds(_orders(), [message], passed)
            except BrokenPipeError:  # a test has killed it
                _orders.cache_clear()
                socket.send_fds(_orders(), [message], passed)
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]
        received, watched, _, _ = socket.recv_fds(self._status, 4096, 1, socket.MSG_CMSG_CLOEXEC)
        assert watched, f"no process was forked: {received.decode()}"
        self.pid, self._watched = int(received), watched[0]
        self._child_created = True

    def _internal_poll(self, *_: object, **__: object) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self._wait(0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        with self._waitpid_lock:  # type: ignore[attr-defined]
            if self.returncode is None:
                poll = select.poll()
                poll.register(self._status, select.POLLIN)
                if not poll.poll(None if timeout is None else 1000 * timeout):
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
                self.returncode = int(self._status.recv(4096) or -signal.SIGKILL)
                self._status.close()
                os.close(self._watched)
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._watched, sig)


def start_fork_server() -> None:
    """Start the fork server for this process and all that it forks later."""
    _orders()


@cache
def _orders() -> socket.socket:
    """The fork server ends when this is closed, and its processes with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MEDIALEDGER_")}
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.fork_server", str(theirs.fileno())],
            cwd=ROOT,
            env=environment | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    return ours
