"""Base of the engine's request and response models. Their names are in snake case: docs/reference/api/job-engine.md."""

from __future__ import annotations

from pydantic import ConfigDict

from api.kernel.wire import Wire


def as_written(name: str) -> str:
    return name


class EngineModel(Wire):
    """A model whose fields have the same name in Python and in JSON."""

    model_config = ConfigDict(alias_generator=as_written)
