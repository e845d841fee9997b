"""`medialedger audit`: entries of the log, differences, verification, and the files and proofs for an auditor."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from urllib.parse import urlencode

import click

from api.cli.command import (
    MOMENT,
    MOMENT_OR_VERSION,
    NOT_WHOLE,
    PATH,
    POSITION,
    POSITIVE,
    TEXT,
    Installation,
    Parsed,
    calls_api,
    form_option,
    group,
    installation_options,
    items_option,
    on_database,
    run_here,
)
from api.cli.output import JSON, NDJSON, Document
from api.cli.remote.history import print_diff, print_entries
from api.cli.remote.jobs import INTERVAL, available
from api.cli.remote.rest_api import RestApi, segment
from api.cli.terminal_text import printable
from api.wiring.startup import StartError
from domain.kernel.clock import iso

if TYPE_CHECKING:
    from api.cli.remote.http_api import HttpApi
    from api.wiring.settings import Settings

_EVENTS: Final = "/api/audit/events/"
_LARGEST: Final = 1000


def _position_or_file(text: str) -> int | Path:
    if not text.lstrip("+-").isdigit():
        return Path(text)
    if (position := int(text)) < 1:
        raise ValueError("a position is at least 1")
    return position


@group(
    "audit",
    examples="""
    medialedger audit show room 1b671a64-40d5-491e-99b0-da01ff1f3341
    medialedger audit show --limit 10
    medialedger audit events --actor desk --from 2031-05-01 --json
    medialedger audit events --type event.state_changed --follow
    medialedger audit diff event 3fa85f64-5717-4562-b3fc-2c963f66afa6 v1 v3
    medialedger audit verify
    medialedger audit verify --since checkpoint.txt
    medialedger audit verify --file events-1.gz
    medialedger audit replay --aggregate event --id 3fa85f64-5717-4562-b3fc-2c963f66afa6
    medialedger audit export --output log.ndjson
    medialedger audit verifier
    """,
)
def audit() -> None:
    """Show the log, check its hash chain, which reveals any change, and export it with proofs for auditors."""


# --- entries


@audit.command("show")
@click.argument("aggregate", type=TEXT, metavar="[AGGREGATE]", required=False, help="The kind of aggregate, such as event or room.")
@click.argument("key", type=TEXT, metavar="[ID]", required=False, help="The id of the aggregate.")
@items_option(50, name="--limit", what="entries")
@form_option
@calls_api
def show_entries(api: RestApi, *, aggregate: str | None, key: str | None, limit: int, form: str) -> None:
    """Show the history of one aggregate, or the newest entries of the log."""
    if aggregate is not None and key is not None:
        entries = api.documents(f"/api/audit/{segment(aggregate)}/{segment(key)}/")[-limit:]
    else:
        newest = api.pages(_EVENTS, {"aggregate": aggregate, "order": "DESC"}, most=limit)
        entries = list(newest)[::-1]
    if not entries:
        raise StartError("the log has no such events")
    print_entries(entries, form=form)


@audit.command("events")
@click.option("--aggregate", type=TEXT, metavar="KIND", help="Such as event or room.")
@click.option("--id", type=TEXT, metavar="ID", help="Only entries of this aggregate.")
@click.option("--actor", type=TEXT, metavar="NAME", help="The author: a client, an end user, shell:<user> or system.")
@click.option("--type", type=TEXT, metavar="TYPE", help="The type of event, such as event.state_changed.")
@click.option("--transaction", "transactionId", type=TEXT, metavar="ID", help="Only entries of this request.")
@click.option("--from", "recorded_from", type=MOMENT, metavar="TIME", help="Recorded then or later.")
@click.option("--to", "recorded_to", type=MOMENT, metavar="TIME", help="Recorded then or earlier.")
@click.option("--after", type=POSITION, metavar="POSITION", help="Only entries after this position, the oldest first.")
@items_option(50, name="--limit", what="entries")
@click.option("--follow", is_flag=True, help="Continue with new entries until Ctrl-C.")
@form_option
@calls_api
def list_entries(
    api: RestApi,
    *,
    recorded_from: datetime | None,
    recorded_to: datetime | None,
    after: int | None,
    limit: int,
    follow: bool,
    form: str,
    **filters: str | None,
) -> None:
    """List the entries of the whole log that match all filters, the newest last."""
    if follow and form == JSON:
        raise StartError("a list without an end is not a JSON document: use --follow with -o ndjson")
    query = {**filters, "from": _time(recorded_from), "to": _time(recorded_to)}
    if after is None:
        entries = list(api.pages(_EVENTS, {**query, "order": "DESC"}, most=limit))[::-1]
    else:
        entries = list(api.pages(_EVENTS, {**query, "after": after}, most=limit))
    if follow:
        _follow(api, query, entries=entries, after=after, form=form)
    elif not entries and form not in (JSON, NDJSON):
        print("no such events", file=sys.stderr)
    else:
        print_entries(entries, form=form)


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)


def _follow(api: RestApi, query: Mapping[str, Any], *, entries: Sequence[Document], after: int | None, form: str) -> None:
    """Print new entries until Ctrl-C, waiting while the product is unavailable. Every entry is printed once, in the order of the
    log."""
    try:
        print_entries(entries, form=form)
        reached = entries[-1]["position"] if entries else after or _head(api)
        while True:
            news = available(partial(_after, api, query, position=reached))
            print_entries(news, form=form)
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


@audit.command("diff")
@click.argument("aggregate", type=TEXT, metavar="AGGREGATE", help="The kind of aggregate, such as event or room.")
@click.argument("key", type=TEXT, metavar="ID", help="The id of the aggregate.")
@click.argument("since", type=MOMENT_OR_VERSION, metavar="FROM", help="A time, or a version: v1.")
@click.argument(
    "until", type=MOMENT_OR_VERSION, metavar="[TO]", required=False, help="A time or a version, as FROM (default: now)."
)
@form_option
@calls_api
def diff_states(api: RestApi, *, aggregate: str, key: str, since: str, until: str | None, form: str) -> None:
    """Show what differs between two moments of one aggregate, and who changed it."""
    print_diff(api, f"/api/audit/{segment(aggregate)}/{segment(key)}/diff", since=since, until=until, form=form)


# --- verification


@audit.command("verify")
@click.option("--since-seal", is_flag=True, help="Only the events after the last sealed partition.")
@click.option(
    "--since",
    type=Parsed("position or file", _position_or_file),
    metavar="POSITION|FILE",
    help="Only the events after this position, or after the checkpoint in this file, which must be of this log.",
)
@click.option("--file", type=PATH, metavar="PATH", help="The file of an exported partition; no database is needed.")
@click.option("--chain-hash", type=TEXT, metavar="HEX", help="With --file: fail unless the partition's seal has this chain hash.")
@installation_options
def verify(
    installation: Installation, *, since_seal: bool, since: int | Path | None, file: Path | None, chain_hash: str | None
) -> int:
    """Recompute the log's hash chain; the exit code is 3 if it is broken."""
    if sum((since_seal, since is not None, file is not None)) > 1:
        raise click.UsageError("only one of --since-seal, --since and --file may be given")
    if chain_hash is not None and file is None:
        raise StartError("--chain-hash needs --file")
    if file is not None:
        from api.cli.local.audit import verify_partition_file

        return verify_partition_file(file, chain_hash=chain_hash)
    api = installation.remote()
    if api is None:
        return run_here(_verify_here, since_seal=since_seal, since=since)
    if since_seal or since is not None:
        raise StartError("the REST API verifies the whole log: omit --since and --since-seal")
    try:
        return _verify_there(api)
    finally:
        api.close()


async def _verify_here(settings: Settings, since_seal: bool, since: int | Path | None) -> int:
    from api.cli.local.audit import verify_log

    return await verify_log(settings, since_seal=since_seal, since=since)


def _verify_there(api: RestApi) -> int:
    """Verify the log. The server recomputes the chain; an answer that is not final says when to ask again."""
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


@audit.command("replay")
@click.option("--aggregate", type=TEXT, metavar="KIND", required=True, help="Such as event or room.")
@click.option("--id", "key", type=TEXT, metavar="ID", help="One aggregate.")
@click.option("--all", "whole", is_flag=True, help="All aggregates of the kind.")
@on_database
async def replay(settings: Settings, *, aggregate: str, key: str | None, whole: bool) -> int:
    """Replay stored events with the eventsourcing library and compare with the views; the exit code is 3 if they differ."""
    if whole == (key is not None):
        raise click.UsageError("one of --id and --all is needed")
    from api.cli.local.audit import replay

    return await replay(settings, aggregate, key=key)


# --- proofs


@audit.command("checkpoint")
@click.option("--now", is_flag=True, help="Sign a new checkpoint first, if the log has new events; needs the master key.")
@installation_options
def print_checkpoint(installation: Installation, now: bool) -> int:
    """Print the last signed checkpoint of the log and its anchors."""
    api = installation.remote()
    if api is None:
        return run_here(_checkpoint_here, now=now)
    if now:
        raise StartError("--now needs the master key: run it on the machine of the product")
    try:
        print("\n".join(map(printable, api.text("/api/audit/checkpoint").splitlines())))
    finally:
        api.close()
    return 0


async def _checkpoint_here(settings: Settings, now: bool) -> int:
    from api.cli.local.audit import print_checkpoint

    return await print_checkpoint(settings, now=now)


@audit.command("key")
@click.option("--all", "whole", is_flag=True, help="Include the earlier keys, the oldest first.")
@on_database
async def print_key(settings: Settings, whole: bool) -> None:
    """Print the public key that checkpoints are signed with."""
    from api.cli.local.audit import print_keys

    await print_keys(settings, whole=whole)


@audit.command("rotate-key")
@on_database
async def rotate_key(settings: Settings) -> None:
    """Replace the signing key by a checkpoint that both keys sign; needs the master key."""
    from api.cli.local.audit import rotate_key

    await rotate_key(settings)


@audit.command("export")
@click.option("--output", type=PATH, metavar="PATH", help="The file, which must not exist yet (default: standard output).")
@click.option("--after", type=POSITION, default=0, metavar="POSITION", help="Only events after this position (default: all).")
@click.option("--through", type=POSITIVE, metavar="POSITION", help="Only events up to this position.")
@click.option("--from", "recorded_from", type=MOMENT, metavar="TIME", help="Only events recorded then or later.")
@click.option("--to", "recorded_to", type=MOMENT, metavar="TIME", help="Only events recorded then or earlier.")
@click.option("--aggregate", type=TEXT, metavar="KIND", help="Only this kind; such an export cannot be verified without --id.")
@click.option("--id", "key", type=TEXT, metavar="ID", help="With --aggregate: all events of one aggregate, with their proofs.")
@installation_options
def export_log(installation: Installation, *, output: Path | None, key: str | None, aggregate: str | None, **extent: Any) -> int:
    """Write the log, or one stream with its proofs, for `verify.py`. A file appears once it is complete."""
    if key is not None and aggregate is None:
        raise StartError("--id needs --aggregate")
    if output is not None and output.exists():
        raise StartError(f"{output} already exists")
    api = installation.remote()
    if api is None:
        return run_here(_export_here, output=output, key=key, aggregate=aggregate, **extent)
    query = {
        "after": extent["after"],
        "through": extent["through"],
        "from": _time(extent["recorded_from"]),
        "to": _time(extent["recorded_to"]),
        "aggregate": aggregate,
        "id": key,
    }
    given = urlencode({name: value for name, value in query.items() if value is not None})
    try:
        _download(api, f"/api/audit/export?{given}", output)
    finally:
        api.close()
    return 0


async def _export_here(settings: Settings, output: Path | None, **selection: Any) -> int:
    from api.cli.local.audit import export

    return await export(settings, output, **selection)


def _download(api: HttpApi, path: str, output: Path | None) -> None:
    if output is None:
        api.download(path, sys.stdout.buffer.write)
        return
    try:
        _write(output, lambda file: api.download(path, file.write))
    except OSError as error:
        raise StartError(f"{output} cannot be written: {error.strerror}") from None


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


@audit.command("verifier")
@installation_options
def print_verifier(installation: Installation) -> None:
    """Print verify.py, which verifies exports without the product."""
    print(Path(__file__).parent.with_name("verify_export.py").read_text(), end="")
