"""The state of the log's integrity, its checkpoints and their anchors, the verifier, and the kinds of aggregates.

docs/reference/api/audit.md.
"""

from __future__ import annotations

import asyncio
from importlib.resources import files
from typing import Annotated, Final

from fastapi import APIRouter, Query
from pydantic import Field

from api.audit.checkpoints import LogProofs
from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import AUDIT
from api.kernel.pages import Whole
from api.kernel.request import Request
from api.kernel.surfaces import AuditRoute
from api.kernel.wire import Instant, Wire
from domain.kernel.mapper import Catalogue
from projections.audit.checkpoints import StoredAnchor
from projections.audit.integrity import Integrity, SignedCheckpoint, Verified, integrity, signed_checkpoints
from projections.audit.seals import LogPartition

routes = APIRouter(prefix="/api/audit", tags=["Audit"], route_class=AuditRoute)

_PROGRAM: Final = "text/x-python; charset=utf-8"
_LARGEST: Final = 100
_LAST: Final = 2**63 - 1


class BackgroundVerification(Wire):
    """The progress of a verification in the background."""

    position: int = Field(description="The last position that was verified.")
    verified_at: Instant = Field(description="The time of that verification.")
    bad_position: int | None = Field(description="The first damaged position; null if there is none.")
    reason: str | None = Field(description="The reason why it is damaged; null if there is none.")

    @classmethod
    def of(cls, verified: Verified | None) -> BackgroundVerification | None:
        if verified is None:
            return None
        return cls.model_construct(
            position=verified.position, verified_at=verified.verified_at, bad_position=verified.bad_position, reason=verified.reason
        )


class LogPartitionState(Wire):
    """A partition of the log."""

    first: int = Field(description="Its first position.")
    last: int = Field(description="Its last position.")
    events: int = Field(description="Its number of events.")
    begins_at: Instant | None = Field(description="The time when its first event was recorded; null if it has none.")
    ends_at: Instant | None = Field(description="The time when its last event was recorded; null if it has none.")
    bytes: int = Field(description="The size of its table and its indexes.")
    sealed_at: Instant | None = Field(description="The time when it was sealed; null while it is not.")
    chain_hash: str | None = Field(description="The chain hash of its seal, 64 hexadecimal digits; null while it is not sealed.")

    @classmethod
    def of(cls, partition: LogPartition) -> LogPartitionState:
        seal = partition.seal
        return cls.model_construct(
            first=partition.first,
            last=partition.last,
            events=partition.events,
            begins_at=partition.begins_at,
            ends_at=partition.ends_at,
            bytes=partition.table_bytes + partition.index_bytes,
            sealed_at=None if seal is None else seal.sealed_at,
            chain_hash=None if seal is None else seal.end.chain_hash.hex(),
        )


class LogIntegrity(Wire):
    """The result of the verifications in the background and the state of checkpoints and partitions. Nothing is verified for it."""

    head: int = Field(description="The last position of the log.")
    tail: BackgroundVerification | None = Field(
        description="The verification that follows the end of the log; null before its first run."
    )
    scrub: BackgroundVerification | None = Field(
        description="The verification that repeatedly reads the whole log, a part each minute; null before its first run."
    )
    anchored_checkpoint: int | None = Field(
        description="The number of the newest checkpoint that is stored outside the database; null if none is."
    )
    keys: list[str] = Field(
        description="The public keys that checkpoints are signed with, the oldest first; the last one is in use."
    )
    partitions: list[LogPartitionState] = Field(description="The partitions of the log, the oldest first.")

    @classmethod
    def of(cls, integrity_state: Integrity) -> LogIntegrity:
        return cls.model_construct(
            head=integrity_state.head,
            tail=BackgroundVerification.of(integrity_state.tail),
            scrub=BackgroundVerification.of(integrity_state.scrub),
            anchored_checkpoint=integrity_state.anchored,
            keys=list(integrity_state.keys),
            partitions=[LogPartitionState.of(partition) for partition in integrity_state.partitions],
        )


class CheckpointAnchor(Wire):
    """A place outside the database that holds a checkpoint."""

    kind: str = Field(description="file, s3, timestamp or webhook.")
    place: str = Field(description="The path, the address, or the id of the webhook.")

    @classmethod
    def of(cls, anchor: StoredAnchor) -> CheckpointAnchor:
        return cls.model_construct(kind=anchor.kind, place=anchor.place)


class LogCheckpoint(Wire):
    """A signed checkpoint of the log."""

    number: int = Field(description="Its number, from 1.")
    commits: int = Field(description="The number of commits: the size of the tree.")
    events: int = Field(description="The number of events.")
    root: str = Field(description="The root of the tree, in Base64 as in the note.")
    time: Instant = Field(description="The time when it was made.")
    signed_by: list[str] = Field(description="The ids of the keys in its signatures: the middle part of a public key.")
    next_key: str | None = Field(
        description="The public key of the signatures after this checkpoint, if it changes the key; otherwise null."
    )
    anchors: list[CheckpointAnchor] = Field(description="The places outside the database that hold it.")
    note: str = Field(description="The checkpoint as it was signed, a C2SP signed note.")

    @classmethod
    def of(cls, checkpoint: SignedCheckpoint) -> LogCheckpoint:
        content = checkpoint.stored.content
        return cls.model_construct(
            number=checkpoint.stored.number,
            commits=content.commits,
            events=content.events,
            root=checkpoint.stored.note.splitlines()[2],
            time=content.time,
            signed_by=list(checkpoint.signed_by),
            next_key=content.next_key,
            anchors=[CheckpointAnchor.of(anchor) for anchor in checkpoint.anchors],
            note=checkpoint.stored.note,
        )


class KindOfAggregate(Wire):
    """A kind of aggregate and the types of its events."""

    aggregate: str = Field(description="The kind, such as event or room.")
    types: list[str] = Field(description="The types of its events, such as event.state_changed.")


class CheckpointsQuery(Wire):
    """A page of checkpoints, the newest first."""

    before: Whole | None = Field(None, description="Only checkpoints with a lower number.")
    page_size: Whole = Field(20, description="Checkpoints in a page; at most 100; larger values are reduced to 100.")


@routes.get("/integrity", dependencies=[AUDIT], response_model=LogIntegrity)
async def get_log_integrity(request: Request, proofs: Service[LogProofs]) -> Response:
    """The progress of verification in the background, the keys of checkpoints, and the partitions of the log."""
    return Response(LogIntegrity.of(await proofs.of_log(integrity)))


@routes.get("/checkpoints/", dependencies=[AUDIT], response_model=list[LogCheckpoint])
async def list_checkpoints(request: Request, query: Annotated[CheckpointsQuery, Query()], proofs: Service[LogProofs]) -> Response:
    """The signed checkpoints of the log, the newest first, with their anchors."""
    before, limit = query.before or _LAST, min(query.page_size, _LARGEST)
    page = await proofs.read(lambda checkpoints: signed_checkpoints(checkpoints, before=before, limit=limit))
    return Response([LogCheckpoint.of(checkpoint) for checkpoint in page])


@routes.get("/verifier", dependencies=[AUDIT])
@rules(media_type=_PROGRAM)
async def get_verifier(request: Request) -> Response:
    """verify.py, the program that verifies exports without the product."""
    source = await asyncio.to_thread(files("api").joinpath("cli", "verify_export.py").read_bytes)
    return Response(source, media_type=_PROGRAM, headers=(("content-disposition", 'attachment; filename="verify.py"'),))


@routes.get("/kinds", dependencies=[AUDIT], response_model=list[KindOfAggregate])
async def list_kinds(request: Request, catalogue: Service[Catalogue]) -> Response:
    """The kinds of aggregates that the log can have, and the types of their events."""
    return Response(
        [KindOfAggregate.model_construct(aggregate=kind, types=catalogue.topics(kind)) for kind in catalogue.aggregates]
    )
