"""The list of all rooms. A new room is a module here and two lines in this file. The order is that of the routes in the API's
documentation."""

from __future__ import annotations

from api.wiring.room import Room
from api.wiring.rooms.asset import ASSET
from api.wiring.rooms.audit import AUDIT
from api.wiring.rooms.client import CLIENT
from api.wiring.rooms.composition import COMPOSITION
from api.wiring.rooms.console import CONSOLE
from api.wiring.rooms.content_key import CONTENT_KEY, SPEKE
from api.wiring.rooms.destination import DESTINATION
from api.wiring.rooms.event import EVENT
from api.wiring.rooms.health import HEALTH
from api.wiring.rooms.job import JOB
from api.wiring.rooms.log import CONSUMERS, LISTS, LOG
from api.wiring.rooms.log_store import LOG_STORE
from api.wiring.rooms.operations import OPERATIONS, QUIET
from api.wiring.rooms.provision import PROVISION
from api.wiring.rooms.publication import PUBLICATION
from api.wiring.rooms.published import ORIGIN, PUBLISHED
from api.wiring.rooms.publishing_point import PUBLISHING_POINTS
from api.wiring.rooms.record import RECORDS
from api.wiring.rooms.session import SESSIONS
from api.wiring.rooms.vault import VAULT
from api.wiring.rooms.webhook import WEBHOOK

ROOMS: tuple[Room, ...] = (
    LOG,
    VAULT,
    EVENT,
    RECORDS,
    PROVISION,
    ASSET,
    COMPOSITION,
    DESTINATION,
    PUBLICATION,
    WEBHOOK,
    CLIENT,
    CONTENT_KEY,
    CONSUMERS,
    LOG_STORE,
    HEALTH,
    QUIET,
    PUBLISHING_POINTS,
    AUDIT,
    SPEKE,
    JOB,
    SESSIONS,
    LISTS,
    PUBLISHED,
    ORIGIN,
    CONSOLE,
    OPERATIONS,
)
