"""The arguments and help texts of the commands about this machine and its user: `doctor`, `open`, `context` and `completion`."""

from __future__ import annotations

from argparse import ArgumentParser

from api.cli.argument_types import utf8
from api.cli.arguments import OPERATE, PERSON, Command
from api.cli.output_arguments import add_consent, add_form, add_target

SHELLS = ("bash", "zsh", "fish")


def _doctor(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--media",
        action="store_true",
        help="only try ffmpeg and ffprobe, in small runs with measured results, and store the verdict: those on PATH are used if "
        "all trials pass, whatever their release",
    )
    add_form(parser)


def _open(parser: ArgumentParser) -> None:
    parser.add_argument("--print", dest="only_print", action="store_true", help="only print the address")
    add_target(parser)


def _context(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser(
        "add", help="try an address and an API key, and store them under a name; the first context becomes the default"
    )
    add.add_argument("name", metavar="NAME", type=utf8)
    add.add_argument("url", metavar="URL", type=utf8, help="such as https://media.example")
    add.add_argument(
        "--key-file",
        type=utf8,
        metavar="FILE",
        help="the API key (-: standard input; default: MEDIALEDGER_API_KEY, else a prompt)",
    )
    add.add_argument("--no-key", action="store_true", help="store no key, for an address that needs none")
    add.add_argument("--no-try", action="store_true", help="store the context without trying it")
    use = actions.add_parser("use", help="make a context the default; without a name, commands go to this machine again")
    use.add_argument("name", metavar="NAME", nargs="?", type=utf8)
    listed = actions.add_parser("list", help="list every context, without its key")
    remove = actions.add_parser("remove", help="forget an address and its key")
    remove.add_argument("name", metavar="NAME", type=utf8)
    add_form(listed)
    add_consent(remove)


def _completion(parser: ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")


DOCTOR = Command(
    "look for problems of this installation",
    "Checks the home, the port, the disk, the database, programs and settings, whether or not the product runs, and says what to "
    "do about each finding. Nothing is changed. `status` checks a running installation. With --media it tries the programs for "
    "media instead, which takes about half a minute, and stores the verdict in the home; restart the product after that.",
    "medialedger doctor\n  medialedger doctor --json\n  medialedger doctor --media",
    _doctor,
    group=OPERATE,
    about_machine=True,
)
OPEN = Command(
    "open the console in a browser",
    "Opens the address of the console in a browser, or prints it if there is no display.",
    "medialedger open\n  medialedger open --context studio --print",
    _open,
    group=PERSON,
    about_machine=True,
    light=True,
)
CONTEXT = Command(
    "name the installations that commands go to",
    "Stores addresses and API keys of installations under names, in a file that only you can read: contexts.json below "
    "XDG_CONFIG_HOME/medialedger, or ~/.config/medialedger. Commands go to the default context, unless --url, --context or --local "
    "says otherwise.",
    "medialedger context add studio https://media.example --key-file studio.key\n  medialedger context use studio\n"
    "  medialedger context list\n  medialedger context use\n  medialedger context remove studio",
    _context,
    group=PERSON,
    about_machine=True,
    light=True,
)
COMPLETION = Command(
    "print a script that completes commands in a shell",
    "Prints a script for bash, zsh or fish that completes commands, options and their values. The product need not be running.",
    "medialedger completion bash\n  medialedger completion zsh\n  medialedger completion fish",
    _completion,
    group=PERSON,
    about_machine=True,
    light=True,
)
