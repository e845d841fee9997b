"""The view of Provision Infos. Its rows with work are also the queue of the provisioners."""

from __future__ import annotations

from pydantic import TypeAdapter

from domain.provision.aggregate import ProvisionInfo
from domain.provision.row import ProvisionRow
from projections.kernel.schema.view import Column, View

ROW: TypeAdapter[ProvisionRow] = TypeAdapter(ProvisionRow)


PROVISION_VIEW = View[ProvisionInfo](
    name="provision_view",
    version=2,
    kinds=(ProvisionInfo.KIND,),
    columns=(
        Column("id", "uuid", lambda info: info.key, wire_type="text"),
        Column("version", "bigint", lambda info: info.version),
        Column("event_id", "uuid", lambda info: str(info.event_id), wire_type="text"),
        Column("infrastructure_key", "text", lambda info: info.infrastructure_key),
        Column("state", "smallint", lambda info: info.state),
        Column("run", "bigint", lambda info: info.run),
        Column("work", "text", lambda info: info.work),
        Column("exists", "boolean", lambda info: info.exists),
        Column("date_created", "timestamptz", lambda info: info.created_on),
        Column("date_modified", "timestamptz", lambda info: info.shown_on),
        Column("document", "text", lambda info: ROW.dump_json(ProvisionRow.of(info)).decode()),
    ),
    key=("id",),
    indexes={
        "event": "{table} (event_id)",
        "infrastructure": "{table} (infrastructure_key)",
        "work": "{table} (infrastructure_key) WHERE work IS NOT NULL",
        "listed": "{table} (date_modified DESC, id)",
    },
)
