"""`medialedger audit` over the REST API: entries of the log, differences, and the verification of a remote log."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import urlencode

from api.cli.arguments import NOT_WHOLE
from api.cli.by_rest.history import print_diff, print_entries
from api.cli.output import JSON, NDJSON, Document
from api.cli.printable import printable
from api.cli.remote.http_api import HttpApi
from api.cli.remote.progress import INTERVAL, available
from api.cli.remote.rest_api import RestApi, segment
from api.wiring.startup import StartError
from domain.kernel.clock import iso

_EVENTS: Final = "/api/audit/events/"
_LARGEST: Final = 1000


def run(args: Namespace, api: RestApi) -> int:
    return _ACTIONS[args.action](args, api) or 0


def _show(args: Namespace, api: RestApi) -> None:
    """Print the history of one aggregate, or the newest entries of the log, in the order of the log."""
    if args.aggregate is not None and args.id is not None:
        entries = api.documents(f"/api/audit/{segment(args.aggregate)}/{segment(args.id)}/")[-args.limit :]
    else:
        newest = api.pages(_EVENTS, {"aggregate": args.aggregate, "order": "DESC"}, most=args.limit)
        entries = list(newest)[::-1]
    if not entries:
        raise StartError("the log has no such events")
    print_entries(entries, form=args.form)


def _events(args: Namespace, api: RestApi) -> None:
    filters = _filters(args)
    if args.follow and args.form == JSON:
        raise StartError("a list without an end is not a JSON document: use --follow with -o ndjson")
    if args.after is None:
        entries = list(api.pages(_EVENTS, {**filters, "order": "DESC"}, most=args.limit))[::-1]
    else:
        entries = list(api.pages(_EVENTS, {**filters, "after": args.after}, most=args.limit))
    if args.follow:
        _follow(args, api, filters, entries=entries)
        return
    if not entries and args.form not in (JSON, NDJSON):
        print("no such events", file=sys.stderr)
        return
    print_entries(entries, form=args.form)


def _filters(args: Namespace) -> Mapping[str, Any]:
    return {
        "aggregate": args.aggregate,
        "id": args.id,
        "actor": args.actor,
        "type": args.type,
        "transactionId": args.transaction,
        "from": _time(args.recorded_from),
        "to": _time(args.recorded_to),
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)


def _follow(args: Namespace, api: RestApi, filters: Mapping[str, Any], *, entries: Sequence[Document]) -> None:
    """Print new entries until Ctrl-C, waiting while the product is unavailable. Every entry is printed once, in the order of the
    log."""
    try:
        print_entries(entries, form=args.form)
        reached = entries[-1]["position"] if entries else args.after or _head(api)
        while True:
            news = available(partial(_after, api, filters, position=reached))
            print_entries(news, form=args.form)
            if news:
                reached = news[-1]["position"]
            else:
                time.sleep(INTERVAL)
    except KeyboardInterrupt:
        return


def _after(api: RestApi, filters: Mapping[str, Any], *, position: int) -> Sequence[Document]:
    return list(api.pages(_EVENTS, {**filters, "after": position}, most=_LARGEST))


def _head(api: RestApi) -> int:
    newest = list(api.pages(_EVENTS, {"order": "DESC"}, most=1))
    return int(newest[0]["position"]) if newest else 0


def _diff(args: Namespace, api: RestApi) -> None:
    print_diff(api, f"/api/audit/{segment(args.aggregate)}/{segment(args.id)}/diff", args)


def _verify(args: Namespace, api: RestApi) -> int:
    """Verify the log. The server recomputes the chain; an answer that is not final says when to ask again."""
    if args.file is not None:
        import asyncio

        from api.cli.audit import verify_partition_file

        return asyncio.run(verify_partition_file(args))
    if args.since_seal or args.since is not None:
        raise StartError("the REST API verifies the whole log: omit --since and --since-seal")
    while (answer := api.call("GET", "/api/audit/verify")).document.get("valid") is None:
        if sys.stderr.isatty():
            print(f"\r{answer.document.get('checked')} events", end="", file=sys.stderr, flush=True)
        time.sleep(min(float(answer.headers.get("retry-after", 1)), 10.0))
    result = answer.document
    if result["valid"] is True:
        print(f"the log is intact: {result.get('checked')} events, each in its position")
        return 0
    print(printable(f"the log is damaged at position {result.get('firstBadPosition')}: {result.get('reason')}"))
    return NOT_WHOLE


def _checkpoint(args: Namespace, api: RestApi) -> None:
    if args.now:
        raise StartError("--now needs the master key: run it on the machine of the product")
    print("\n".join(map(printable, _remote(api).text("/api/audit/checkpoint").splitlines())))


def _export(args: Namespace, api: RestApi) -> None:
    """Write the export to standard output or to a new file, which appears once it is complete."""
    query = {
        "after": args.after,
        "through": args.through,
        "from": _time(args.recorded_from),
        "to": _time(args.recorded_to),
        "aggregate": args.aggregate,
        "id": args.id,
    }
    target = f"/api/audit/export?{urlencode({name: value for name, value in query.items() if value is not None})}"
    if args.output is None:
        _remote(api).download(target, sys.stdout.buffer.write)
        return
    if args.output.exists():
        raise StartError(f"{args.output} already exists")
    try:
        _write(args.output, lambda file: _remote(api).download(target, file.write))
    except OSError as error:
        raise StartError(f"{args.output} cannot be written: {error.strerror}") from None


def _write(path: Path, write: Callable[[BinaryIO], None]) -> None:
    draft = path.with_name(f".{path.name}.part")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _remote(api: RestApi) -> HttpApi:
    assert isinstance(api, HttpApi), "on the database these actions have another implementation"
    return api


def _verifier(args: Namespace, api: RestApi) -> None:
    from api.cli.verifier_text import verifier_text

    print(verifier_text(), end="")


_ACTIONS: Final[Mapping[str, Callable[[Namespace, RestApi], int | None]]] = {
    "show": _show,
    "events": _events,
    "diff": _diff,
    "verify": _verify,
    "verifier": _verifier,
    "checkpoint": _checkpoint,
    "export": _export,
}
