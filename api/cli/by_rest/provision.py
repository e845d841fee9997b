"""`medialedger provision show` and `cancel` over the REST API."""

from __future__ import annotations

from argparse import Namespace

from api.cli.consent import confirm
from api.cli.output import moment, print_one
from api.cli.rest_api import ApiError, RestApi
from api.wiring.startup import StartError


def run(args: Namespace, api: RestApi) -> int:
    path = f"/api/provision/{args.event}"
    if args.action == "cancel":
        confirm(args, f"terminate the infrastructure of the Event {args.event} at {api.label}")
        api.call("DELETE", path)
    try:
        found = api.document(path)
    except ApiError as error:
        if error.status == 404:
            raise StartError(f"nobody has asked for infrastructure of an Event {args.event}") from None
        raise
    facts = {
        "event": str(args.event),
        "state": found.get("stateString"),
        "key": found.get("infrastructureKey"),
        "provisioned": moment(found.get("provisionedAt")),
        "terminated": moment(found.get("terminatedAt")),
        "resources": found.get("resourcesJson"),
    }
    print_one(found, facts.items(), form=args.form)
    return 0
