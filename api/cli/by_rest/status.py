"""`medialedger status` of a running product, from its API."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from api.cli.arguments import NEEDS_ATTENTION
from api.cli.output import Finding, print_findings
from api.cli.remote.rest_api import ApiError, RestApi
from api.cli.status_findings import findings


def run(args: Namespace, api: RestApi) -> int:
    """Return 0 if nothing needs attention."""
    rows = [*_answering(api), *findings(api.document("/api/health/overview/"))]
    print_findings(rows, form=args.form)
    return NEEDS_ATTENTION if any(finding.attention for finding in rows) else 0


def _answering(api: RestApi) -> Iterator[Finding]:
    version = api.document("/api/health/version")
    summary = f"{version.get('productVersion')} on {version.get('machineName')}, called as {version.get('client')}"
    try:
        api.get("/readyz")
        yield Finding("product", summary)
    except ApiError as error:
        yield Finding("product", summary, f"it is not ready: {error}")
