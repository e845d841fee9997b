"""The engine settings of clients. They are never cached: a change takes effect with the next decision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

from domain.record.kinds.schedule import Schedule, ScheduleDetails
from domain.record.kinds.setting import EngineSettings, Setting, SettingDetails, Value
from projections.kernel.data_loader import DataLoader
from projections.kernel.database.database import Database

_OF_CLIENTS = "SELECT document FROM record_view WHERE kind = %s AND parent = ANY(%s) AND NOT deleted"


class EngineSettingsQueries:
    """Reads the settings of any number of clients in one query. Requests that read those of one client at the same moment share a
    query. A client without own settings has the defaults."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._of_client = DataLoader[str, EngineSettings](self._load, lanes=1)

    async def of(self, clients: Sequence[str]) -> dict[str, EngineSettings]:
        return await (self._of_client.many(clients) if len(clients) == 1 else self._load(clients))

    async def _load(self, clients: Sequence[str]) -> dict[str, EngineSettings]:
        return {client: EngineSettings.of(chosen) for client, chosen in (await self.chosen(clients)).items()}

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
