"""Models that are built when they are first used, so that a start builds only what it needs: each can be built."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import pytest
from pydantic import BaseModel

from api.http.model import Wire
from domain.kernel.event import DomainEvent
from domain.kernel.json_document import Section
from tests.architecture.sources import PACKAGES, ROOT, files


def below(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from below(model)


@pytest.mark.parametrize("base", [DomainEvent, Section, Wire])
def test_every_model_is_complete(base: type[BaseModel]) -> None:
    for path in files():
        module = path.relative_to(ROOT).with_suffix("")
        if path.name not in ("__init__.py", "__main__.py"):
            import_module(".".join(module.parts))
    models = [model for model in below(base) if model.__module__.partition(".")[0] in PACKAGES]
    assert len(models) > 10
    for model in models:
        model.model_rebuild()
        assert model.__pydantic_complete__, f"{model.__module__}.{model.__qualname__}"
