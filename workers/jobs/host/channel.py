"""The host's end of the channel, and what becomes of the host without it. Issue 7, point 4.

A thread of its own reads, so a wish to end is heard while a step runs. A host that hears nothing from its worker ends, with all
that its step started: the worker may be dead, or frozen and its lease given to another.
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
from workers.jobs.host.frames import Frame, Garbled, Unpacker, packed

_UNTIL_TOLD: Final = 30.0
_PIECE: Final = 65_536


class Channel:
    """Reads in one thread, sends from any."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sending = Lock()
        self.patience = _UNTIL_TOLD
        """So many seconds without a word from the worker, and it is taken for dead."""

    def send(self, frame: Frame) -> None:
        with self._sending:
            self._sock.sendall(packed(frame))

    def frames(self) -> Iterator[Frame]:
        """Until there is nobody to hear from."""
        unpacker = Unpacker()
        with suppress(OSError, Garbled):
            while select.select([self._sock], [], [], self.patience)[0] and (piece := self._sock.recv(_PIECE)):
                yield from unpacker.frames(piece)

    # --- Heard, for the step

    def progress(self, fraction: float, message: str) -> None:
        self.send({"kind": "progress", "fraction": fraction, "message": message})

    def log(self, severity: Severity, message: str) -> None:
        self.send({"kind": "log", "severity": int(severity), "message": message})


def end_group() -> None:
    """This process, and all that it started and that did not leave its group."""
    os.killpg(os.getpgrp(), signal.SIGKILL)
