"""Content keys: the keys that protected video is encrypted with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from api.wiring.container import Providers, Services
from api.wiring.room import Room
from domain.content_key.aggregate import ContentKey
from domain.content_key.handlers import ContentKeyHandlers
from projections.content_key.queries import ContentKeyQueries, ContentKeyRow
from projections.content_key.view import CONTENT_KEY_VIEW
from projections.job.settings import EngineSettingsQueries
from projections.kernel.database.database import Database
from projections.kernel.schema.migrate import Migration
from projections.log.executor import CommandExecutor
from projections.vault.vault import Vault

if TYPE_CHECKING:
    from fastapi import APIRouter

    from api.audit.past_states import Moment, Renderer


def _routes() -> Sequence[APIRouter]:
    from api.media import content_key

    return (content_key.routes,)


def _services(services: Services) -> Providers:
    from api.speke.routes import ContentKeyCeiling

    get = services.get
    return {
        ContentKeyQueries: lambda: ContentKeyQueries(get(Database)),
        ContentKeyHandlers: lambda: ContentKeyHandlers(
            get(CommandExecutor),
            get(ContentKeyQueries),
            vault=get(Vault),
            random=os.urandom,
            ceiling=ContentKeyCeiling(get(ContentKeyQueries), get(EngineSettingsQueries)),
        ),
    }


def _past_states(services: Services) -> Mapping[str, Renderer]:
    from api.media import content_key as responses

    async def content_key(root: ContentKey, moment: Moment) -> Any:
        return responses.ContentKey.of(ContentKeyRow.of(root)).model_dump(mode="json")

    return {ContentKey.KIND: content_key}


CONTENT_KEY = Room(
    name="content_key",
    aggregates=(ContentKey,),
    views=(CONTENT_KEY_VIEW,),
    migrations=(Migration.read("0011 usage of content keys", "content_key/schema.sql"),),
    routes=_routes,
    services=_services,
    past_states=_past_states,
)
