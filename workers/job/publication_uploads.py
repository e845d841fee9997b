"""Answers for steps that upload a publication: the destination with its secrets, and the progress of earlier runs.

The destination is opened while the step runs, so that its secrets appear in no order, event or log line, and a password that was
changed is used at the next attempt.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from typing import Any, Final
from uuid import UUID

from pydantic_core import to_json

from projections.job.queue import QueuedRun
from projections.job.upload_states import UploadStates, UploadTaken
from workers.job.protocol import Answer
from workers.ports.targets import OpenDestination, OpenedDestination, TargetFailed

OPEN: Final = "publication"
SAVE: Final = "upload_state"
MOST_STATE: Final = 65_536
"""Bytes of a saved state as JSON."""

_log = logging.getLogger(__name__)


async def no_destinations(publication: UUID, *, job: int) -> OpenedDestination:
    """Refuse to open a destination: for workers that publish nothing."""
    raise TargetFailed("destination", "This worker has no destinations.")


class PublicationUploads:
    """Answers the steps of uploads."""

    def __init__(self, states: UploadStates, *, opens: OpenDestination = no_destinations) -> None:
        self._states = states
        self._opens = opens

    def answers(self, publication: UUID, run: QueuedRun) -> Mapping[str, Answer]:
        """Return the answers to the questions of this run, by kind."""

        async def open_destination(_: Mapping[str, Any]) -> Mapping[str, Any]:
            return await _answer(self._open(publication, run))

        async def save_state(question: Mapping[str, Any]) -> Mapping[str, Any]:
            return await _answer(self._save(publication, run, question.get("state")))

        return {OPEN: open_destination, SAVE: save_state}

    async def forget(self, job: int) -> None:
        await self._states.forget(job)

    async def _open(self, publication: UUID, run: QueuedRun) -> Mapping[str, Any]:
        destination = await self._opens(publication, job=run.job)
        state = await self._states.take(publication, job=run.job, run=run.run)
        return {"opened": destination, "state": state}

    async def _save(self, publication: UUID, run: QueuedRun, state: object) -> Mapping[str, Any]:
        if not isinstance(state, dict) or len(to_json(state)) > MOST_STATE:
            raise ValueError(f"a state must be a JSON object of at most {MOST_STATE} bytes")
        await self._states.save(publication, state, job=run.job, run=run.run)
        return {}


async def _answer(work: Awaitable[Mapping[str, Any]]) -> Mapping[str, Any]:
    try:
        return await work
    except TargetFailed as failed:
        return {"failed": {"kind": failed.kind, "sentence": str(failed)}}
    except UploadTaken:
        return {"refused": "A later run uploads this publication."}
    except Exception as fault:  # of any kind: the step would wait for ever
        _log.error("a step cannot upload: %s", type(fault).__name__)
        return {"refused": "The destination cannot be opened; see the log of the worker."}
