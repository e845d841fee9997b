"""The arguments and help texts of the commands about films and publications: `compose`, `destination` and `publish`."""

from __future__ import annotations

from argparse import ArgumentParser

from api.cli.argument_types import event_id, target, title, utf8
from api.cli.arguments import MEDIA_WORK, Command
from api.cli.output_arguments import add_form


def _destination(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="add a destination; it stays inactive until a test succeeds")
    add.add_argument("name", metavar="NAME", type=title)
    add.add_argument("--target", type=target, required=True, metavar="TARGET", help="such as S3, SFTP, HTTP or FILESYSTEM")
    add.add_argument(
        "--config",
        type=utf8,
        required=True,
        metavar="FILE",
        help="the configuration as JSON, readable only by its owner (-: standard input)",
    )
    test = actions.add_parser(
        "test", help="try the target; on success the destination becomes active, otherwise the exit code is 1"
    )
    test.add_argument("destination", metavar="NAME_OR_ID", type=utf8)
    listed = actions.add_parser("list", help="list every destination by name, without its configuration")
    add_form(listed)


def _publish(parser: ArgumentParser) -> None:
    parser.add_argument("event", metavar="EVENT", type=event_id, help="the id of an Event whose MP4 file is available")
    parser.add_argument("destination", metavar="DESTINATION", type=utf8, help="the name or the id of an active destination")
    parser.add_argument(
        "--follow", action="store_true", help="show the progress in bytes until the upload is completed or has failed"
    )
    parser.add_argument(
        "--text",
        type=utf8,
        metavar="FILE",
        help="title, description, callbackUrls and fields of the target, as JSON, readable only by its owner "
        "(-: standard input; default: none)",
    )
    parser.add_argument(
        "--client",
        type=utf8,
        metavar="NAME",
        help="the client that owns the publication and its job (default: admin; through the REST API, the API key's client)",
    )


def _compose(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser(
        "show", help="show a time line of items and breaks, the state of the film, and the progress of its job"
    )
    show.add_argument("event", metavar="EVENT", type=event_id, help="the id of an Event with a playlist")
    add_form(show)


COMPOSE = Command(
    "show the playlist of an Event",
    "Shows when each item and each break of a playlist begins, as far as lengths are known, the state of the Event and its film, "
    "why it could not be made, and the progress of its job.",
    "medialedger compose show 3fa85f64-5717-4562-b3fc-2c963f66afa6",
    _compose,
    group=MEDIA_WORK,
)
DESTINATION = Command(
    "add, test and list the destinations of publications",
    "Adds the places that films are published to, and checks that they can be reached: a test logs in, writes and removes what "
    "a publication needs, and says in one sentence what is wrong and what to do. Keys and passwords are read from a file or from "
    "standard input, are stored encrypted, and are never shown.",
    "medialedger destination add Archive --target S3 --config s3.json\n"
    '  echo \'{"path": "films"}\' | medialedger destination add Share --target FILESYSTEM --config -\n'
    "  medialedger destination test Archive\n  medialedger destination list --json",
    _destination,
    group=MEDIA_WORK,
    by_rest=("add", "test", "list"),
)
PUBLISH = Command(
    "publish the film of an Event at a destination",
    "Creates a publication, whose upload is a job of the running workers. With --follow it shows the upload and, at the end, the "
    "state; the exit code is 0 only for Completed. Ctrl-C leaves the upload to the workers.",
    "medialedger publish 3fa85f64-5717-4562-b3fc-2c963f66afa6 Archive --follow\n"
    "  medialedger publish 3fa85f64-5717-4562-b3fc-2c963f66afa6 Archive --text film.json",
    _publish,
    group=MEDIA_WORK,
    remote=("",),
)
