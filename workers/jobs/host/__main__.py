"""`python -m workers.jobs.host FD NETWORK IDS`: started by a worker, never by hand. FD is the host's end of the channel."""

from __future__ import annotations

import importlib
import os
import socket
import sys
from contextlib import suppress

from workers.jobs.host.channel import Channel
from workers.jobs.host.confinement import Confinement, confine
from workers.jobs.host.host import StepHost
from workers.jobs.registry import installed


def main(fd: int, *, network: str, ids: str) -> None:
    """Starts a session of its own, if it has none: the process kills its whole process group at the end. What the product itself
    needs is imported before it is confined, workflows of other packages after that."""
    confinement = Confinement.of(network, ids)
    if confinement.network:
        importlib.import_module("workers.adapters.outbound_http")
    confined = confine(confinement)
    with suppress(PermissionError):
        os.setsid()
    os.set_inheritable(fd, False)
    os.chdir("/")
    StepHost(Channel(socket.socket(fileno=fd)), installed(), confined=confined).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), network=sys.argv[2], ids=sys.argv[3])
