"""`medialedger status` of a product that is elsewhere: what its API tells."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from api.cli.arguments import NEEDS_ATTENTION
from api.cli.findings import Finding, print_findings
from api.cli.output import text
from api.cli.rest_api import ApiError, RestApi


def run(args: Namespace, api: RestApi) -> int:
    """0: nothing needs attention."""
    found = list(_findings(api))
    print_findings(found, form=args.form)
    return NEEDS_ATTENTION if any(one.attention for one in found) else 0


def _findings(api: RestApi) -> Iterator[Finding]:
    version = api.document("/api/health/version")
    yield Finding("product", f"{version.get('productVersion')} on {version.get('machineName')}, called as {version.get('client')}")
    try:
        api.get("/readyz")
        yield Finding("database", "answers")
    except ApiError as error:
        yield Finding("database", "is not ready", str(error))
    yield _consumers(api)
    yield _jobs(api)
    yield _webhooks(api)


def _consumers(api: RestApi) -> Finding:
    late, wrong = [], []
    for one in api.documents("/api/consumer/"):
        if one.get("lag"):
            late.append(f"{one.get('name')} is {one['lag']} events behind")
        if one.get("position") is not None and not one.get("members"):
            wrong.append(f"nobody runs {one.get('name')}: `medialedger workers {one.get('name')}`")
        if one.get("parked"):
            wrong.append(f"{one.get('name')} has parked {one['parked']}: `medialedger consumers parked {one.get('name')}`")
    return Finding("consumers", ", ".join(late) or "all are at the end of the log", "; ".join(wrong))


def _jobs(api: RestApi) -> Finding:
    failed = api.documents("/engine/jobs", state="completed", failed=True, items=1000)
    started = api.documents("/engine/jobs", state="started", items=1000)
    queued = api.documents("/engine/jobs", state="queued", items=1000)
    said = f"{len(started)} started, {len(queued)} queued, {len(failed)} failed"
    return Finding("jobs", said, "some failed: `medialedger jobs list --failed`" if failed else "")


def _webhooks(api: RestApi) -> Finding:
    found = api.documents("/api/webhook/")
    disabled = [text(one.get("webhookUrl")) for one in found if one.get("disabledAt")]
    return Finding("webhooks", f"{len(found)}, {len(disabled)} disabled", f"disabled: {', '.join(disabled)}" if disabled else "")
