"""The views as the database has them: a changed view has its earlier version until the new version is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from domain.kernel.errors import Unavailable
from projections.kernel.database.database import Database
from projections.kernel.schema.view import View, ViewRow, Views


class StoredViews(Views):
    """The views that the appends of a process write. An append is refused if a table has changed its version since; `refresh` must
    then be called."""

    def __init__(self, views: Sequence[View[Any]], database: Database) -> None:
        super().__init__(views)
        self._database = database
        self._stored = {view.name: view for view in views}

    async def refresh(self) -> None:
        """Read the versions again. Raise `Unavailable` if this build cannot write a version."""
        versions: dict[str, int] = dict(await self._database.rows("SELECT name, version FROM view_versions"))
        self._stored = {view.name: _in_version(view, versions.get(view.name, view.version)) for view in self.all}
        self._write(self._stored.values())

    def writes(self, rows: Sequence[ViewRow]) -> bool:
        """Return True if the rows have the versions of the tables."""
        return all(view.version == self._stored.get(view.name, view).version for view, _, _ in rows)


def _in_version(view: View[Any], version: int) -> View[Any]:
    if version == view.version:
        return view
    if view.earlier is None or version != view.earlier.version:
        raise Unavailable(f"{view.name} has version {version} in the database, and this build writes version {view.version}")
    return replace(view.earlier, kinds=view.kinds)
