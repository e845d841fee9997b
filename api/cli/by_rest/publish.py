"""`medialedger publish` over the REST API: publishes the film of an Event at a destination, and follows the upload."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from typing import Any, Final

from api.cli.by_rest import destination
from api.cli.printable import printable
from api.cli.remote.lookup import named
from api.cli.remote.progress import INTERVAL, available
from api.cli.remote.rest_api import RestApi
from api.cli.shell import secret_text
from api.wiring.startup import StartError

_PROCESSING: Final = "Processing"
_COMPLETED: Final = "Completed"


def run(args: Namespace, api: RestApi) -> int:
    """Publish the film, and follow the upload if requested. On an interruption the workers continue the upload."""
    if args.client is not None:
        raise StartError("through the REST API a publication belongs to the client of the API key: omit --client")
    text = "{}" if args.text is None else secret_text(args.text)
    place = named(api.documents(f"{destination.PATH}/"), args.destination, kind="destination")
    body = {"eventId": str(args.event), "publications": [{"destinationId": place["id"], "publicationJson": text}]}
    made = api.call("POST", "/api/media/vodpublication/", body=body).document
    key = made[0]["id"]
    print(f"publication {key}", flush=True)
    if not args.follow:
        return 0
    try:
        ended = _wait_for_end(api, key)
    except KeyboardInterrupt:
        print("medialedger: the upload continues", file=sys.stderr)
        raise
    state = ended.get("publicationStateString")
    if state != _COMPLETED:
        raise StartError(f"the publication is {state}")
    print(state)
    link = (ended.get("details") or {}).get("link")
    if isinstance(link, str):
        print(printable(link))
    return 0


def _wait_for_end(api: RestApi, key: str) -> dict[str, Any]:
    while True:
        publication = available(lambda: api.document(f"/api/vodpublications/{key}"))
        if publication.get("publicationStateString") != _PROCESSING:
            return publication
        time.sleep(INTERVAL)
