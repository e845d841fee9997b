"""Content keys: the keys that protected video is encrypted with, and the key provider for packagers (SPEKE)."""

from __future__ import annotations

from api.wiring.room import Room
from domain.content_key.aggregate import ContentKey
from domain.content_key.ports import KeyLookup, RandomBytes
from projections.content_key.queries import ContentKeyQueries
from projections.content_key.view import CONTENT_KEY_VIEW
from projections.kernel.schema.migrate import Migration

CONTENT_KEY = Room(
    name="content_key",
    aggregates=(ContentKey,),
    views=(CONTENT_KEY_VIEW,),
    migrations=(Migration.read("0011 usage of content keys", "content_key/schema.sql"),),
    routes=("api.media.content_key:routes",),
    services={KeyLookup: ContentKeyQueries, RandomBytes: "api.wiring.providers:random_bytes"},
    past_states=("api.media.content_key:past_states",),
)
SPEKE = Room(name="speke", routes=("api.speke.routes:routes",))
