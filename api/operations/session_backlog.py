"""Metrics of sessions, from the database."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from projections.sessions.store import SessionQueries


class SessionBacklog:
    """Gauges of sessions that are set from the database."""

    def __init__(self, sessions: SessionQueries, *, registry: CollectorRegistry) -> None:
        self._read = sessions
        self._sessions = Gauge("medialedger_sessions", "Sessions by kind and state", ("kind", "state"), registry=registry)
        self._silent = Gauge(
            "medialedger_session_silent_seconds",
            "Time since the last report of the running session that has been silent longest",
            ("kind",),
            registry=registry,
        )
        self._pushes = Gauge(
            "medialedger_pushes",
            "Live publications in progress, by the state of the connection to their targets",
            ("connected",),
            registry=registry,
        )

    async def refresh(self) -> None:
        self._sessions.clear()
        self._silent.clear()
        pushes = await self._read.pushes()
        for connected in (True, False):
            self._pushes.labels(str(connected).lower()).set(pushes.get(connected, 0))
        for kind, state, count, silent in await self._read.counts():
            self._sessions.labels(kind, state).set(count)
            if silent is not None:
                self._silent.labels(kind).set(silent)
