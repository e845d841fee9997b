"""`medialedger workflows` over the REST API."""

from __future__ import annotations

from argparse import Namespace

from api.cli.remote.rest_api import RestApi, segment
from api.cli.workflow_list import print_workflow, print_workflows


def run(args: Namespace, api: RestApi) -> int:
    if args.action == "list":
        print_workflows(api.documents("/engine/workflows"), form=args.form)
    else:
        print_workflow(api.document(f"/engine/workflows/{segment(args.name)}"), form=args.form)
    return 0
