"""The fork server's own process: it has one thread, has imported what its processes need, and forks for each start. ADR 0045."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from api.cli.parent import end_with

_LARGEST: Final = 1 << 20
"""Bytes of an order."""
_MOST: Final = 253
"""Descriptors in one message, SCM_MAX_FD of the kernel."""
_SET_NAME: Final = 15  # PR_SET_NAME of prctl(2)
_HELD: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
"""Blocked here: what stops the processes must not kill the fork server before them. A signal that reaches a process before it is
set up waits, and is not lost."""


@dataclass(frozen=True)
class Start:
    """What the new process was ordered with."""

    order: Any
    descriptors: list[int]


@dataclass(frozen=True)
class _Forked:
    """`watched` is its pidfd, `status` where its pid and its exit code are told."""

    pid: int
    watched: int
    status: socket.socket

    def tell_pid(self) -> None:
        with suppress(OSError):  # nobody waits for it
            socket.send_fds(self.status, [str(self.pid).encode()], [self.watched])

    def tell_end(self) -> None:
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        with suppress(OSError):
            self.status.send(str(code).encode())
        self.close()

    def close(self) -> None:
        os.close(self.watched)
        self.status.close()


def next_start(orders: socket.socket) -> Start | None:
    """Returns in each new process with what it is to do. In the fork server it returns None, when nobody can give orders any more.

    A message is an order in JSON and the descriptors for it; the first is the socket for the status. A process is in a session of
    its own, and the kernel kills it when the fork server ends.
    """
    if len(os.listdir("/proc/self/task")) != 1:
        raise RuntimeError("a process with several threads cannot be forked safely")
    signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    gc.collect()
    gc.freeze()  # the collector of a process writes to what it walks, and such a page is no longer shared
    running: dict[int, _Forked] = {}
    poll = select.poll()
    poll.register(orders, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready != orders.fileno():
                poll.unregister(ready)
                running.pop(ready).tell_end()
                continue
            text, descriptors, _, _ = socket.recv_fds(orders, _LARGEST, _MOST, socket.MSG_CMSG_CLOEXEC)
            if not text:
                return None
            status = socket.socket(fileno=descriptors[0])
            pid = _fork(status)
            if pid == 0:
                for other in running.values():
                    other.close()
                status.close()
                orders.close()
                return Start(json.loads(text), descriptors[1:])
            for descriptor in descriptors[1:]:
                os.close(descriptor)
            if pid is not None:
                forked = _Forked(pid, os.pidfd_open(pid), status)
                forked.tell_pid()
                running[forked.watched] = forked
                poll.register(forked.watched, select.POLLIN)


def _fork(status: socket.socket) -> int | None:
    """The pid; 0 in the new process. None without one, for the reason that `status` tells."""
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        with suppress(OSError), status:
            status.send(str(error).encode())
        return None
    if pid == 0:
        os.setsid()
        end_with(parent)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)
    return pid


def set_title(title: str) -> None:
    """What `ps` and `top` show. The kernel reads the arguments of a process from its memory, so the title is written there."""
    ctypes.CDLL(None).prctl(_SET_NAME, title.rpartition(": ")[2].encode())
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end of proc(5)
    if room := end - start:
        ctypes.memmove(start, title.encode()[: room - 1].ljust(room, b"\0"), room)
