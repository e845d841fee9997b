"""`python -m workers.job.host FD`: the fork server of the processes in which steps run. ADR 0057.

A worker starts it, never a person. FD is the socket for orders. An order is a `Confinement`, and comes with the process's own end
of the channel.
"""

from __future__ import annotations

import os
import socket
import sys
from importlib import import_module

from workers.job.host.channel import HostChannel
from workers.job.host.host import ReachablePlaces, StepHost
from workers.job.registry import installed
from workers.kernel.confinement import Confinement, confine
from workers.kernel.fork_server import ProcessStart, next_start


def main(orders: int) -> None:
    import_module("workers.media.captions.documents")  # a confined step cannot import it
    start = next_start(socket.socket(fileno=orders), groups=True)
    if start is not None:
        _run_steps(start)


def _run_steps(start: ProcessStart) -> None:
    """Confine this process and run steps in it.

    The product's own modules are imported before it is confined. Workflows of other packages are imported after that, in each
    process: the fork server runs no code of other packages.
    """
    [channel] = start.descriptors
    confinement = Confinement(**start.order)
    if confinement.network:
        import_module("workers.adapters.outbound_http")
    with ReachablePlaces.recorded((*confinement.read, *confinement.write)) as places:
        lacks = confine(confinement)
    os.chdir("/")
    StepHost(HostChannel(socket.socket(fileno=channel)), installed(), lacks=lacks, places=places).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]))
