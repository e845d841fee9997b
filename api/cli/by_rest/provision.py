"""`medialedger provision show` and `cancel` over the REST API."""

from __future__ import annotations

from argparse import Namespace

from api.cli.output import moment, print_one
from api.cli.remote.rest_api import ApiError, RestApi
from api.cli.shell import confirm
from api.wiring.startup import StartError


def run(args: Namespace, api: RestApi) -> int:
    path = f"/api/provision/{args.event}"
    if args.action == "cancel":
        confirm(args, f"terminate the infrastructure of the Event {args.event} at {api.label}")
        api.call("DELETE", path)
    try:
        provision = api.document(path)
    except ApiError as error:
        if error.status == 404:
            raise StartError(f"the Event {args.event} has never been provisioned") from None
        raise
    facts = {
        "event": str(args.event),
        "state": provision.get("stateString"),
        "key": provision.get("infrastructureKey"),
        "provisioned": moment(provision.get("provisionedAt")),
        "terminated": moment(provision.get("terminatedAt")),
        "resources": provision.get("resourcesJson"),
    }
    print_one(provision, facts.items(), form=args.form)
    return 0
