"""`medialedger completion`: the script of click that completes commands, actions, options and their values in a shell. While a
person types, the shell runs `medialedger` with a variable that asks for the words that may follow."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from api.cli.command import COMPLETE, command

SHELLS: Final = ("bash", "zsh", "fish")


@command(
    "completion",
    examples="""
    medialedger completion bash
    medialedger completion zsh
    medialedger completion fish
    """,
)
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL", help=f"One of {', '.join(SHELLS)}.")
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script for bash, zsh or fish that completes commands, options and their values. The product need not be running."""
    root = ctx.find_root()
    script = get_completion_class(shell)
    assert script is not None, "click completes in these shells"
    print(script(root.command, {}, root.info_name or "", COMPLETE).source())
