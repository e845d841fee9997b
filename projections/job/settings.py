"""The engine settings of clients. They are never cached: a change takes effect with the next decision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

from domain.record.kinds.schedule import Schedule, ScheduleDetails
from domain.record.kinds.setting import EngineSettings, Setting, SettingDetails, Value
from projections.kernel.database.database import Database

_OF_CLIENTS = "SELECT document FROM record_view WHERE kind = %s AND parent = ANY(%s) AND NOT deleted"


class EngineSettingsQueries:
    """Reads the settings of any number of clients in one query. A client without own settings has the defaults."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, clients: Sequence[str]) -> dict[str, EngineSettings]:
        chosen = await self.chosen(clients)
        return {client: EngineSettings.of(chosen[client]) for client in clients}

    async def chosen(self, clients: Sequence[str]) -> dict[str, dict[str, Value]]:
        """Return the settings that each client has set, by name, including names of its own."""
        settings: dict[str, dict[str, Value]] = defaultdict(dict)
        for (document,) in await self._database.rows(_OF_CLIENTS, (Setting.KIND, list(clients))):
            details = _details(document)
            settings[details.client][details.name] = details.setting
        return {client: settings[client] for client in clients}

    async def schedule_active(self, clients: Sequence[str]) -> dict[str, bool]:
        """Return, by client, True if its scheduled jobs are queued when their time comes."""
        active = dict.fromkeys(clients, True)
        for (document,) in await self._database.rows(_OF_CLIENTS, (Schedule.KIND, list(clients))):
            details = ScheduleDetails.model_validate_json(document)
            active[details.client] = details.active
        return active


@lru_cache(maxsize=1000)
def _details(document: str) -> SettingDetails:
    return SettingDetails.model_validate_json(document)
