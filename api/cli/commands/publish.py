"""`medialedger publish`: publishes the film of an Event at a destination, and follows the upload."""

from __future__ import annotations

import sys
import time
from typing import Any, Final
from uuid import UUID

import click

from api.cli.command import ID, TEXT, calls_api, command
from api.cli.commands.destination import PATH as DESTINATIONS
from api.cli.remote.jobs import INTERVAL, available, owner, watch
from api.cli.remote.lookup import named
from api.cli.remote.rest_api import ApiError, RestApi
from api.cli.shell import secret_text
from api.cli.terminal_text import printable
from api.wiring.startup import StartError

_RUNNING: Final = ("Processing", "InProgress")
_COMPLETED: Final = "Completed"
_UPLOAD: Final = "publication_upload"


@command(
    "publish",
    examples="""
    medialedger publish 3fa85f64-5717-4562-b3fc-2c963f66afa6 Archive --follow
    medialedger publish 3fa85f64-5717-4562-b3fc-2c963f66afa6 Archive --text film.json
    """,
)
@click.argument("event", type=ID, metavar="EVENT", help="The id of an Event whose MP4 file is available.")
@click.argument("destination", type=TEXT, metavar="DESTINATION", help="The name or the id of an active destination.")
@click.option("--follow", is_flag=True, help="Show the progress in bytes until the upload is completed or has failed.")
@click.option(
    "--text",
    type=TEXT,
    metavar="FILE",
    help="Title, description, callbackUrls and fields of the target, as JSON, readable only by its owner (-: standard input; "
    "default: none).",
)
@click.option(
    "--client",
    type=TEXT,
    metavar="NAME",
    help="The client that owns the publication and its job; only an admin may name another (default: admin at the machine of the "
    "product, elsewhere the API key's client).",
)
@calls_api
def publish(api: RestApi, *, event: UUID, destination: str, follow: bool, text: str | None, client: str | None) -> int:
    """Create a publication, whose upload is a job of the running workers. With --follow it shows the upload and, at the end, the
    state; the exit code is 0 only for Completed. Ctrl-C leaves the upload to the workers."""
    publication_json = "{}" if text is None else secret_text(text)
    place = named(api.documents(f"{DESTINATIONS}/"), destination, kind="destination")
    body = {
        "eventId": str(event),
        "publications": [{"destinationId": place["id"], "publicationJson": publication_json}],
        "client": owner(api, client),
    }
    key = api.call("POST", "/api/media/vodpublication/", body=body).document[0]["id"]
    print(f"publication {key}", flush=True)
    job = _job_of(api, key)
    if follow or job is None:
        return _follow(api, key, destination=str(place["id"]), job=job)
    print(f"the upload is the job {job}: {_watch_hint(job)}")
    return 0


def _watch_hint(job: int) -> str:
    return f"`medialedger jobs watch {job}` shows its progress"


def _job_of(api: RestApi, key: str) -> int | None:
    """Return the number of the newest job that uploads a publication; None if there is none."""
    rows = api.documents("/engine/jobs", workflow=_UPLOAD, search=key, items=1)
    return int(rows[0]["id"]) if rows else None


def _follow(api: RestApi, key: str, *, destination: str, job: int | None) -> int:
    """Follow the upload to its end and return the exit code. On an interruption the workers continue the upload."""
    try:
        ended = _wait_for_end(api, key, destination=destination, job=job)
    except KeyboardInterrupt:
        print("medialedger: the upload continues" + ("" if job is None else f"; {_watch_hint(job)}"), file=sys.stderr)
        raise
    state = ended.get("publicationStateString")
    if state != _COMPLETED:
        raise StartError(f"the publication is {state}{_reason(api, key)}")
    print(state)
    link = (ended.get("details") or {}).get("link")
    if isinstance(link, str):
        print(printable(link))
    return 0


def _wait_for_end(api: RestApi, key: str, *, destination: str, job: int | None) -> dict[str, Any]:
    """Return the publication once it has ended. It shows the end of its job a moment later than the job, and another job may repeat
    the upload by then."""
    watched = set[int]()
    while True:
        publication = available(lambda: _publication(api, key, destination))
        if publication.get("publicationStateString") not in _RUNNING:
            return publication
        if job is not None and job not in watched:
            watched.add(job)
            watch(api, [job], client=None)
        else:
            time.sleep(INTERVAL)
        job = available(lambda: _job_of(api, key))


def _publication(api: RestApi, key: str, destination: str) -> dict[str, Any]:
    try:
        return api.document(f"/api/vodpublications/{key}", destinationId=destination)
    except ApiError as error:
        if error.status == 404:
            raise StartError("the publication was deleted") from None
        raise


def _reason(api: RestApi, key: str) -> str:
    """Return the reason of a failure from the audit, which only auditors and admins may read."""
    try:
        history = api.documents(f"/api/audit/publication/{key}/")
    except ApiError:
        return ""
    reasons = [data["reason"] for entry in history if isinstance(data := entry.get("data"), dict) and data.get("reason")]
    return f": {reasons[-1]}" if reasons else ""
