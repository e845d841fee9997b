"""The view of Provision Infos. Its rows with work are also the queue of the provisioners."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from domain.provision.aggregate import ProvisionInfo
from domain.provision.row import ProvisionRow
from projections.kernel.schema.view import Column, View

_COLUMNS = (
    Column("id", "uuid", wire_type="text"),
    Column("version", "bigint"),
    Column("event_id", "uuid", wire_type="text"),
    Column("infrastructure_key", "text"),
    Column("state", "smallint"),
    Column("run", "bigint"),
    Column("work", "text"),
    Column("exists", "boolean"),
    Column("date_created", "timestamptz"),
    Column("date_modified", "timestamptz"),
    Column("document", "text"),
)

ROW: TypeAdapter[ProvisionRow] = TypeAdapter(ProvisionRow)


def row(info: ProvisionInfo) -> tuple[Any, ...]:
    return (
        info.key,
        info.version,
        str(info.event_id),
        info.infrastructure_key,
        info.state,
        info.run,
        info.work,
        info.exists,
        info.created_on,
        info.shown_on,
        ROW.dump_json(ProvisionRow.of(info)).decode(),
    )


PROVISION_VIEW = View(
    name="provision_view",
    version=2,
    kinds=(ProvisionInfo.KIND,),
    columns=_COLUMNS,
    row=row,
    key=("id",),
    indexes={
        "event": "{table} (event_id)",
        "infrastructure": "{table} (infrastructure_key)",
        "work": "{table} (infrastructure_key) WHERE work IS NOT NULL",
        "listed": "{table} (date_modified DESC, id)",
    },
)
