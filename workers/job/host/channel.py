"""The step process's end of the channel to its worker.

A separate thread reads, so a cancellation arrives while a step runs. A process that hears nothing from its worker kills itself,
with all processes that it started.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from threading import Lock
from typing import Final

from domain.job.values import Severity
from workers.job.host.frames import Frame, Garbled, Unpacker, pack

_DEFAULT_PATIENCE: Final = 30.0
_PIECE: Final = 65_536


class HostChannel:
    """A channel to the worker. It is read in one thread, and may be written to by any thread."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sending = Lock()
        self.patience = _DEFAULT_PATIENCE
        """Seconds without a message after which the worker is taken for dead."""

    def send(self, frame: Frame) -> None:
        with self._sending:
            self._sock.sendall(pack(frame))

    def frames(self) -> Iterator[Frame]:
        """Yield the messages of the worker, until it is gone."""
        unpacker = Unpacker()
        with suppress(OSError, Garbled):
            while select.select([self._sock], [], [], self.patience)[0] and (piece := self._sock.recv(_PIECE)):
                yield from unpacker.frames(piece)

    # --- StepListener, for the step

    def progress(self, fraction: float, message: str) -> None:
        self.send({"kind": "progress", "fraction": fraction, "message": message})

    def log(self, severity: Severity, message: str) -> None:
        self.send({"kind": "log", "severity": int(severity), "message": message})


def end_group() -> None:
    """Kill this process and its process group."""
    os.killpg(os.getpgrp(), signal.SIGKILL)
