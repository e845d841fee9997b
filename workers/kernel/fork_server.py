"""The process of the fork server: it has one thread, has imported what its processes need, and forks for each start. See ADR
0045."""

from __future__ import annotations

import ctypes
import errno
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

from workers.kernel.parent import end_with

_LARGEST: Final = 1 << 20
"""The largest size of an order in bytes."""
_MOST: Final = 253
"""The largest number of descriptors in one message: SCM_MAX_FD of the kernel."""
_SET_NAME: Final = 15  # PR_SET_NAME of prctl(2)
_BLOCKED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
"""Signals that are blocked here: those that stop the processes must not kill the fork server before them. A signal that reaches a
process before it is set up waits, and is not lost."""


@dataclass(frozen=True)
class ProcessStart:
    """The order of a new process."""

    order: Any
    descriptors: list[int]


@dataclass(frozen=True)
class _Child:
    """A forked process. `watched` is its pidfd; its pid and exit code are sent to `status`."""

    pid: int
    watched: int
    status: socket.socket

    def send_pid(self) -> None:
        with suppress(OSError):  # no process waits for it
            socket.send_fds(self.status, [str(self.pid).encode()], [self.watched])

    def send_exit_code(self) -> None:
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        with suppress(OSError):
            self.status.send(str(code).encode())
        self.close()

    def kill_group(self) -> None:
        """Kill the process group. It must be called before waiting for the process: until then no other process or group can get
        its number."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        os.close(self.watched)
        self.status.close()


def next_start(orders: socket.socket, *, groups: bool = False) -> ProcessStart | None:
    """Fork for each order. Return in each new process with its order; return None in the fork server when no process can send
    orders any more.

    A message is an order in JSON and the descriptors for it; the first is the socket for the status. A process has its own session,
    and the kernel kills it when the fork server ends. With `groups` it survives the fork server, and the programs that it has
    started end with it: its process group is killed when it has ended, and the groups of all processes when no process can send
    orders any more. See ADR 0057.
    """
    if len(os.listdir("/proc/self/task")) != 1:
        raise RuntimeError("a process with several threads cannot be forked safely")
    signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
    gc.collect()
    gc.freeze()  # the collector writes to the objects it visits, and their pages would no longer be shared
    running: dict[int, _Child] = {}
    poll = select.poll()
    poll.register(orders, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready != orders.fileno():
                poll.unregister(ready)
                ended = running.pop(ready)
                if groups:
                    ended.kill_group()
                ended.send_exit_code()
                continue
            text, descriptors, flags, _ = socket.recv_fds(orders, _LARGEST, _MOST, socket.MSG_CMSG_CLOEXEC)
            if not text:
                for forked in running.values() if groups else ():
                    forked.kill_group()
                return None
            started = _carry_out(text, descriptors, complete=not flags & socket.MSG_CTRUNC, dies=not groups)
            if isinstance(started, ProcessStart):
                for forked in running.values():
                    forked.close()
                orders.close()
                return started
            if started is not None:
                running[started.watched] = started
                poll.register(started.watched, select.POLLIN)


def _carry_out(text: bytes, descriptors: list[int], *, complete: bool, dies: bool) -> _Child | ProcessStart | None:
    """Carry out an order. Return a `ProcessStart` in the new process, and None if there is no new process: then the status is the
    number of the error. `complete`: this process had enough descriptors to receive those of the order."""
    if not descriptors:
        return None
    status, received = socket.socket(fileno=descriptors[0]), descriptors[1:]
    try:
        if not complete:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        pid = _fork(dies=dies)
        if pid == 0:
            status.close()
            return ProcessStart(json.loads(text), received)
        forked = _Child(pid, _open_pidfd(pid), status)
        forked.send_pid()
    except OSError as error:
        with suppress(OSError), status:
            status.send(str(error.errno).encode())
        forked = None
    for descriptor in received:
        os.close(descriptor)
    return forked


def _fork(*, dies: bool) -> int:
    """Fork, and return the pid; 0 in the new process."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if dies:
            end_with(parent)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED)
    return pid


def _open_pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def set_title(title: str) -> None:
    """Set the title that `ps` and `top` show. The kernel reads the arguments of a process from its memory, so the title is written
    there."""
    ctypes.CDLL(None).prctl(_SET_NAME, title.rpartition(": ")[2].encode())
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end of proc(5)
    if room := end - start:
        ctypes.memmove(start, title.encode()[: room - 1].ljust(room, b"\0"), room)
