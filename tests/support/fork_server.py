"""`python -m tests.support.fork_server`: forks for each process of the product that tests start, since to import it takes a second.

It has imported also what the rooms import when they are first used: all workers, with the libraries of their adapters.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import resource
import runpy
import socket
import sys
from typing import Final

import api.cli.main
import workers
from api.cli.run.limits import collect_seldom
from api.http.routing import routes_of
from api.wiring.catalogue import catalogue
from api.wiring.services import ROUTES
from workers.kernel.fork_server import ProcessStart, next_start

_PRELOADED: Final = (
    "api.cli.run.process",
    "api.cli.run.serving",
    "api.cli.run.up",
    "api.cli.run.workers",
    "api.wiring.providers",
    "api.wiring.product",
    "uvicorn.protocols.http.httptools_impl",
)


def _preload() -> None:
    for module in (*_PRELOADED, *(module_info.name for module_info in pkgutil.walk_packages(workers.__path__, "workers."))):
        importlib.import_module(module)
    catalogue()
    for route in routes_of(ROUTES):
        _ = (route.query, route.signature.body and route.body)


def main(orders: int) -> object:
    collect_seldom()
    _preload()
    start = next_start(socket.socket(fileno=orders))
    return 0 if start is None else _run(start)


def _run(start: ProcessStart) -> object:
    """Run the command line of the product, or a script when the first argument is one, as the interpreter does."""
    for number, descriptor in enumerate(start.descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115 - until the end
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    resource.setrlimit(resource.RLIMIT_NOFILE, start.order["files"])
    os.chdir(start.order["directory"])
    os.environ.clear()
    os.environ.update(start.order["environment"])
    sys.argv = start.order["arguments"]
    if sys.argv[0].endswith(".py"):
        runpy.run_path(sys.argv[0], run_name="__main__")
        return 0
    return api.cli.main.main()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))  # type: ignore[arg-type]
