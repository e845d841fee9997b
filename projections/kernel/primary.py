"""The primary of a PostgreSQL with standbys: which host it is, and whether it is still the one that was read from."""

from __future__ import annotations

import logging

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

_log = logging.getLogger(__name__)


class Primary:
    """As the connections of one process have met it. `timeline` is that of the write-ahead log: a promotion raises it, and what was
    read before may be lost then. So what was read on one timeline must not be used on another."""

    def __init__(self, conninfo: str) -> None:
        self.timeline = 0
        self._parts = conninfo_to_dict(conninfo)
        self._hosts = list(zip(*(self._each(name) for name in ("host", "hostaddr", "port")), strict=True))
        self._latest = 0

    @property
    def conninfo(self) -> str:
        """The address with the host first that was the primary at last: the others may not answer, which costs seconds."""
        if len(self._hosts) == 1:
            return make_conninfo("", **self._parts)
        order = [*self._hosts[self._latest :], *self._hosts[: self._latest]]
        names = zip(("host", "hostaddr", "port"), (",".join(column) for column in zip(*order, strict=True)), strict=True)
        return make_conninfo("", **{**self._parts, **{name: text for name, text in names if text.strip(",")}})

    def met(self, timeline: int, *, host: str, port: int) -> None:
        """A connection has reached a primary. Raises when it is an older one, which does not know yet that it is none any more."""
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
        found = (number for number, (name, _, at) in enumerate(self._hosts) if name == host and at in ("", str(port)))
        self._latest = next(found, self._latest)

    def _each(self, name: str) -> list[str]:
        """One text for each host."""
        count = max(len(str(self._parts.get(one) or "").split(",")) for one in ("host", "hostaddr"))
        texts = str(self._parts.get(name) or "").split(",")
        return texts * count if len(texts) == 1 else texts
