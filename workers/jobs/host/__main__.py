"""`python -m workers.jobs.host FD NETWORK IDS`: started by a worker, never by hand. FD is the host's end of the channel."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress

from workers.jobs.host.channel import Channel
from workers.jobs.host.confinement import Confinement, confine
from workers.jobs.host.host import StepHost
from workers.jobs.registry import installed


def main(fd: int, *, network: str, ids: str) -> None:
    """Starts a session of its own, if it has none: the process kills its whole process group at the end. Workflows of other
    packages are loaded when it is confined."""
    confined = confine(Confinement.of(network, ids))
    with suppress(PermissionError):
        os.setsid()
    os.set_inheritable(fd, False)
    os.chdir("/")
    StepHost(Channel(socket.socket(fileno=fd)), installed(), confined=confined).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), network=sys.argv[2], ids=sys.argv[3])
