"""`medialedger open`: opens the console in a browser."""

from __future__ import annotations

import os
import subprocess
import sys
from shutil import which

import click

from api.cli.command import Installation, command, installation_options
from api.cli.remote.contexts import running_api
from api.cli.shell import environment
from api.wiring.startup import StartError

_PATH = "/console/"
_OPENERS = ("xdg-open", "open", "wslview")


@command(
    "open",
    examples="""
    medialedger open
    medialedger open --context studio --print
    """,
)
@click.option("--print", "only_print", is_flag=True, help="Only print the address.")
@installation_options
def open_console(installation: Installation, only_print: bool) -> None:
    """Open the console in a browser, or print its address if there is no display."""
    api = installation.remote() or running_api()
    if api is None:
        raise StartError("no product runs on this home; `medialedger up` starts it")
    address = f"{api.url}{_PATH}"
    print(address)  # the browser may be on another machine
    if not only_print and sys.stdout.isatty() and (environment().get("DISPLAY") or environment().get("WAYLAND_DISPLAY")):
        _open(address)


def _open(address: str) -> None:
    """Open the address with the desktop's opener. Its output is discarded."""
    opener = next((path for name in _OPENERS if (path := which(name)) is not None), None)
    if opener is not None:
        with open(os.devnull, "r+") as nowhere:
            subprocess.Popen(  # noqa: S603 - a program on PATH, with a validated address
                [opener, address], stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True
            )
