"""The console script `medialedger`: finds the module of a command, and runs it. A command that only calls the API imports neither
the settings nor the product, so it starts as quickly as Python. See ADR 0076 and ADR 0113."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from errno import EDQUOT, ENOSPC
from importlib import import_module
from typing import Any, Final, NamedTuple

import click
from click.shell_completion import shell_complete

from api.cli.command import COMPLETE, EXIT_CODES
from api.cli.run.limits import collect_seldom
from api.cli.shell import environment
from api.cli.terminal_text import printable_lines
from api.wiring.startup import StartError

RUN, OPERATE, MEDIA_WORK, AUDIT_WORK, PERSON = SECTIONS = (
    "run the product",
    "operate it",
    "media and jobs",
    "audit and data",
    "this shell",
)
"""The sections of the help."""
PROGRAM: Final = "medialedger"


class CommandEntry(NamedTuple):
    """A command: its module below api/cli/commands/, its name there, its section of the help, and its summary."""

    module: str
    name: str
    section: str
    summary: str


COMMANDS: Mapping[str, CommandEntry] = {
    "up": CommandEntry("serve", "up", RUN, "run everything on this machine"),
    "demo": CommandEntry("demo", "demo", RUN, "load or remove a demo"),
    "api": CommandEntry("serve", "api", RUN, "run only the API"),
    "workers": CommandEntry("serve", "workers", RUN, "run only the workers"),
    "origin": CommandEntry("serve", "origin", RUN, "receive and play live streams, without a database"),
    "settings": CommandEntry("settings", "settings", RUN, "show every setting"),
    "migrate": CommandEntry("schema", "migrate", RUN, "bring the database's schema up to date"),
    "load-sample": CommandEntry("load_sample", "load_sample", RUN, "write a sample schedule"),
    "status": CommandEntry("status", "status", OPERATE, "show the state of the installation and what needs attention"),
    "doctor": CommandEntry("doctor", "doctor", OPERATE, "look for problems of this installation"),
    "events": CommandEntry("events", "events", OPERATE, "list Events, show one as it is or as it was"),
    "webhooks": CommandEntry("webhooks", "webhooks", OPERATE, "list webhooks and their deliveries, send a delivery again"),
    "sessions": CommandEntry("sessions", "sessions", OPERATE, "list the sessions of encoders, stop a session"),
    "channel": CommandEntry("channel", "channel", OPERATE, "test a channel before an Event needs it"),
    "provision": CommandEntry("provision", "provision", OPERATE, "list, show, plan and cancel the infrastructure of Events"),
    "consumers": CommandEntry(
        "consumers", "consumers", OPERATE, "list the consumers of the log, replay parked records, forget a consumer"
    ),
    "projections": CommandEntry("schema", "projections", OPERATE, "list or rebuild the views"),
    "builds": CommandEntry("schema", "builds", OPERATE, "list the builds that run on the database"),
    "client": CommandEntry("client", "client", OPERATE, "create, list and revoke clients and API keys"),
    "keys": CommandEntry("keys", "keys", OPERATE, "import and export content keys, rotate or replace the master key"),
    "jobs": CommandEntry("jobs", "jobs", MEDIA_WORK, "submit, watch and control jobs"),
    "workflows": CommandEntry("workflows", "workflows", MEDIA_WORK, "list the workflows that jobs run, with their parameters"),
    "media": CommandEntry("media", "media", MEDIA_WORK, "bring media into the product"),
    "compose": CommandEntry("compose", "compose", MEDIA_WORK, "show the playlist of an Event"),
    "destination": CommandEntry("destination", "destination", MEDIA_WORK, "add, test and list the destinations of publications"),
    "publish": CommandEntry("publish", "publish", MEDIA_WORK, "publish the film of an Event at a destination"),
    "audit": CommandEntry("audit", "audit", AUDIT_WORK, "read and check the log"),
    "log": CommandEntry("log", "log", AUDIT_WORK, "list, seal and export the partitions of the log"),
    "backup": CommandEntry("backup", "backup", AUDIT_WORK, "write the database to one file"),
    "restore": CommandEntry("backup", "restore", AUDIT_WORK, "create a database from a back-up"),
    "restored": CommandEntry("backup", "restored", AUDIT_WORK, "record in the log that its database was restored"),
    "quiet": CommandEntry("quiet", "quiet", OPERATE, "stop what leaves the installation, and resume it"),
    "context": CommandEntry("context", "context", PERSON, "name the installations that commands go to"),
    "open": CommandEntry("console", "open_console", PERSON, "open the console in a browser"),
    "completion": CommandEntry("completion", "completion", PERSON, "print a script that completes commands in a shell"),
}


class CommandLine(click.Group):
    """All commands. The module of a command is imported when the command is called, or its help is shown."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if (entry := COMMANDS.get(cmd_name)) is None:
            return None
        command: click.Command = getattr(import_module(f"api.cli.commands.{entry.module}"), entry.name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Return the commands that begin with a text, without importing their modules."""
        from click.shell_completion import CompletionItem

        named = [CompletionItem(name, help=entry.summary) for name, entry in COMMANDS.items() if name.startswith(incomplete)]
        return named if not incomplete.startswith("-") else click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in SECTIONS:
            with formatter.section(section):
                formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items() if entry.section == section])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"\nsettings are environment variables: medialedger settings\n\n{EXIT_CODES}")


def _show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from api.kernel.version import product_version

        print(f"{PROGRAM} {product_version()}")
        ctx.exit()


@click.group(
    cls=CommandLine,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    options_metavar="[--version]",
    subcommand_metavar="COMMAND [ACTION] [OPTIONS]",
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Show the version and exit."
)
def command_line() -> None:
    """An event-sourced back end for live and on-demand video."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    os.umask(0o077)
    from workers.kernel.confinement import conceal

    conceal()
    collect_seldom()  # before most imports
    if argv is None and (instruction := environment().get(COMPLETE)):
        return shell_complete(command_line, {}, PROGRAM, COMPLETE, instruction)
    words = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except StartError as error:
        print(f"medialedger: {printable_lines(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _drop_output()  # `medialedger settings | head`
        return 0
    except OSError as error:
        if error.errno not in (ENOSPC, EDQUOT) or error.filename is not None:
            raise
        _drop_output()
        print(f"medialedger: the output could not be written: {error.strerror}", file=sys.stderr)
        return 1


def _run(words: list[str]) -> int:
    try:
        with command_line.make_context(PROGRAM, words) as ctx:
            code: int | None = command_line.invoke(ctx)
            return code or 0
    except click.exceptions.Exit as end:
        return end.exit_code


def _drop_output() -> None:
    """Redirect standard output to the null device, so that flushing its buffer no longer fails."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
