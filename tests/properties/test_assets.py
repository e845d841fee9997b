"""Any sequence of commands to assets, outcomes of jobs in any order and number among them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import from_json

from domain.asset.aggregate import Asset
from domain.asset.values import AssetState, AssetType, CaptionKind
from domain.kernel.command import Command
from tests.domain.scenario import THEN
from tests.properties.test_decisions import holds, lived

EVENT, KEY = UUID(int=1), UUID(int=7)
jobs, versions, sizes = st.integers(1, 3), st.integers(1, 4), st.integers(0, 2)
paths = st.sampled_from(["a/x.jpg", "a/y.jpg"])
moments = st.integers(0, 2).map(lambda seconds: THEN + timedelta(seconds=seconds))


def asset_commands(key: UUID) -> st.SearchStrategy[Command[Any]]:
    """Two assets that want one path claim it: only one gets it."""
    of = st.just(key)
    file = {"size": sizes, "modified": moments}
    event = st.just(EVENT)
    kinds = st.sampled_from([AssetType.IMAGE, AssetType.VIDEO, AssetType.GIF])
    languages, captions = st.sampled_from(["de", "en"]), st.sampled_from(CaptionKind)
    names = st.sampled_from(["x", "y"])
    published = st.dictionaries(paths, sizes, max_size=2)
    return st.one_of(
        st.builds(Asset.request.on, of, event_id=event, type=kinds, name=names, path=paths, job=jobs),
        st.builds(Asset.discover.on, of, event_id=event, name=names, path=paths, **file),
        st.builds(Asset.discover_caption.on, of, event_id=event, name=names, path=paths, language=languages, kind=captions, **file),
        st.builds(Asset.complete.on, of, jobs, job_version=versions, sizes=published),
        st.builds(Asset.fail.on, of, jobs, job_version=versions, reason=names),
        st.builds(Asset.restart.on, of, jobs, job_version=versions, rerun_of=st.none() | jobs),
        st.builds(Asset.resume.on, of, jobs, job_version=versions, rerun_of=st.none() | jobs),
        st.builds(Asset.rename.on, of, names),
        st.builds(Asset.change_file.on, of, **file, name=st.none() | names),
        st.builds(Asset.remove.on, of, running_job=st.none() | jobs),
        st.builds(Asset.forget.on, of),
        st.builds(Asset.release_path.on, of),
    )


@settings(max_examples=300, deadline=None)
@given(st.lists(asset_commands(KEY), max_size=40))
def test_the_invariants_of_an_asset_hold(commands: list[Command[Any]]) -> None:
    log, root = lived(commands)
    holds(log, root, len(log) // 2)
    if root is None:
        return
    assert isinstance(root, Asset)
    topics = [topic.removeprefix("asset.") for topic, *_ in log]
    assert topics.count("removed") <= 1
    if root.removed:
        assert topics[topics.index("removed") + 1 :] in ([], ["file_deleted"])
    assert (root.type in (AssetType.SYSTEM, AssetType.CAPTION)) == (not root.jobs)
    if root.state is AssetState.COMPLETED:
        assert root.size is not None
    assert root.holds_path == bool(root.claims())
    assert root.holds_path or root.removed


def _outcomes(kinds: list[str]) -> list[Command[Any]]:
    """Return the outcomes of the first job, and of those that repeat it, in the order of the log."""
    outcomes: list[Command[Any]] = []
    job, version = 1, 1
    for kind in kinds:
        version += 1
        if kind == "rerun":
            job, version = job + 1, 1
            outcomes.append(Asset.restart.on(KEY, job, job_version=1, rerun_of=job - 1))
        elif kind == "resumed":
            outcomes.append(Asset.restart.on(KEY, job, job_version=version))
        elif kind == "failed":
            outcomes.append(Asset.fail.on(KEY, job, job_version=version, reason="no"))
        else:
            outcomes.append(Asset.complete.on(KEY, job, job_version=version, sizes={"a/x.jpg": 1}))
    return outcomes


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(["rerun", "resumed", "failed", "completed"]), max_size=8), st.data())
def test_outcomes_that_come_again_late_change_nothing(kinds: list[str], data: st.DataObject) -> None:
    """The engine tells each outcome at least once and in order; who was frozen meanwhile repeats one when it is thawed."""
    first = Asset.request.on(KEY, event_id=EVENT, type=AssetType.IMAGE, name="x", path="a/x.jpg", job=1)
    outcomes = _outcomes(kinds)
    repeated: list[Command[Any]] = []
    for index, command in enumerate(outcomes):
        late = st.lists(st.integers(0, index), max_size=3).map(lambda before: [outcomes[number] for number in before])
        repeated += [command, *data.draw(late)]
    log, _ = lived([first, *outcomes])
    again, _ = lived([first, *repeated])
    assert [(topic, _facts(state)) for topic, _, _, state in again] == [(topic, _facts(state)) for topic, _, _, state in log]


def _facts(state: bytes) -> dict[str, Any]:
    return {name: value for name, value in from_json(state).items() if name != "timestamp"}
