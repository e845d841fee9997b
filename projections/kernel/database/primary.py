"""The primary of a PostgreSQL with standbys: which host it is, and whether it is still the one that data was read from."""

from __future__ import annotations

import logging

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

_log = logging.getLogger(__name__)


class Primary:
    """The primary as the connections of one process have found it.

    `timeline` is the timeline of the write-ahead log. A promotion raises it, and data that was read before may then be lost, so
    data read on one timeline must not be used on another.
    """

    def __init__(self, conninfo: str) -> None:
        self.timeline = 0
        self._parts = conninfo_to_dict(conninfo)
        self._hosts = list(zip(*(self._each(name) for name in ("host", "hostaddr", "port")), strict=True))
        self._latest = 0

    @property
    def conninfo(self) -> str:
        """The address, with the host first that was last the primary. The others may not answer, which costs seconds."""
        if len(self._hosts) == 1:
            return make_conninfo("", **self._parts)
        order = [*self._hosts[self._latest :], *self._hosts[: self._latest]]
        names = zip(("host", "hostaddr", "port"), (",".join(column) for column in zip(*order, strict=True)), strict=True)
        return make_conninfo("", **{**self._parts, **{name: text for name, text in names if text.strip(",")}})

    def met(self, timeline: int, *, host: str, port: int) -> None:
        """Record that a connection has reached a primary. Raise if it is an older one that does not
        know yet that it was replaced."""
        if timeline < self.timeline:
            raise psycopg.OperationalError(f"{host} was the primary before another server was promoted")
        if self.timeline and timeline > self.timeline:
            _log.warning(
                "the database has another primary, %s port %d; if it may lack the latest commits, stop the API and the workers "
                "and run `medialedger restored`",
                host,
                port,
            )
        self.timeline = timeline
        matches = (number for number, (name, _, at) in enumerate(self._hosts) if name == host and at in ("", str(port)))
        self._latest = next(matches, self._latest)

    def _each(self, name: str) -> list[str]:
        """Return one text for each host."""
        count = max(len(str(self._parts.get(parameter) or "").split(",")) for parameter in ("host", "hostaddr"))
        texts = str(self._parts.get(name) or "").split(",")
        return texts * count if len(texts) == 1 else texts
