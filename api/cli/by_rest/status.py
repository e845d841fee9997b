"""`medialedger status` of a product that runs: what its API tells."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from api.cli.arguments import NEEDS_ATTENTION
from api.cli.findings import Finding, print_findings
from api.cli.rest_api import ApiError, RestApi
from api.cli.status_findings import findings


def run(args: Namespace, api: RestApi) -> int:
    """0: nothing needs attention."""
    found = [*_answering(api), *findings(api.document("/api/health/overview/"))]
    print_findings(found, form=args.form)
    return NEEDS_ATTENTION if any(one.attention for one in found) else 0


def _answering(api: RestApi) -> Iterator[Finding]:
    version = api.document("/api/health/version")
    said = f"{version.get('productVersion')} on {version.get('machineName')}, called as {version.get('client')}"
    try:
        api.get("/readyz")
        yield Finding("product", said)
    except ApiError as error:
        yield Finding("product", said, f"It is not ready: {error}")
