"""The list of every view and every migration of the product."""

from __future__ import annotations

from pathlib import Path

from projections.clients.view import CLIENT_VIEW
from projections.content_keys.view import CONTENT_KEY_VIEW
from projections.custom_property.view import CUSTOM_PROPERTY_VIEW
from projections.job.view import JOB_TASK_VIEW, JOB_VIEW
from projections.kernel.migrate import Migration
from projections.kernel.view import Views
from projections.media_event.view import EVENT_VIEW
from projections.records.view import RECORD_VIEW

_HERE = Path(__file__).parent


def views() -> Views:
    return Views((EVENT_VIEW, RECORD_VIEW, CUSTOM_PROPERTY_VIEW, CLIENT_VIEW, CONTENT_KEY_VIEW, JOB_VIEW, JOB_TASK_VIEW))


def migrations() -> list[Migration]:
    """Applied in this order and never edited once released; a change is a new file."""
    return [
        Migration("0001 log", (_HERE / "log" / "schema.sql").read_text()),
        Migration("0002 views", (_HERE / "kernel" / "views.sql").read_text()),
        Migration("0003 key use", (_HERE / "clients" / "schema.sql").read_text()),
        Migration("0004 links", (_HERE / "log" / "links.sql").read_text()),
        Migration("0005 logbook", (_HERE / "logbook" / "schema.sql").read_text()),
        Migration("0006 vault", (_HERE / "vault" / "schema.sql").read_text()),
        Migration("0007 archiver streams", (_HERE / "archiver_stream" / "schema.sql").read_text()),
        Migration("0008 view kinds", (_HERE / "kernel" / "view_kinds.sql").read_text()),
        Migration("0009 consumers", (_HERE / "consumers" / "schema.sql").read_text()),
        Migration("0010 deliveries", (_HERE / "deliveries" / "schema.sql").read_text()),
        Migration("0011 master keys", (_HERE / "vault" / "master_keys.sql").read_text()),
        Migration("0012 job queue", (_HERE / "queue" / "schema.sql").read_text()),
    ]
