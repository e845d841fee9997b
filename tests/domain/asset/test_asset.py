"""An asset follows its job, is renamed, and removed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from domain.asset import events
from domain.asset.aggregate import PATH as PATHS
from domain.asset.aggregate import Asset
from domain.asset.values import AssetState, AssetType
from domain.kernel.aggregate import Claim
from domain.kernel.command import Command
from domain.kernel.errors import NotFound, PlanOutdated, Refused
from tests.domain.asset.assets_given import (
    EVENT,
    FILE_DELETED,
    JOB,
    KEY,
    NEXT_JOB,
    PATH,
    REMOVED,
    an_asset,
    completed,
    discovered,
    failed,
    requested,
    restarted,
)
from tests.domain.scenario import THEN, Fact, fact, given

REQUEST = Asset.request.on(KEY, event_id=EVENT, type=AssetType.IMAGE, name="Goal", path=PATH, job=JOB)
DISCOVER = Asset.discover.on(KEY, event_id=EVENT, name="goal.jpg", path=PATH, size=3, modified=THEN)
REMOVE = Asset.remove.on(KEY, running_job=JOB)


def complete(version: int = 5, job: int = JOB, **sizes: int) -> Command[Asset]:
    return Asset.complete.on(KEY, job, job_version=version, sizes=sizes or {PATH: 3, "other": 9})


def fail(version: int = 5, job: int = JOB) -> Command[Asset]:
    return Asset.fail.on(KEY, job, job_version=version, reason="no")


def resume(version: int, job: int = JOB) -> Command[Asset]:
    return Asset.restart.on(KEY, job, job_version=version)


def rerun(job: int = NEXT_JOB, rerun_of: int = JOB) -> Command[Asset]:
    return Asset.restart.on(KEY, job, job_version=1, rerun_of=rerun_of)


def claimed(root: Asset) -> bool:
    return root.claims() == {Claim(PATHS, PATH, root.id)}


def resume_job(job: int, version: int = 1, rerun_of: int | None = None) -> Command[Asset]:
    return Asset.resume.on(KEY, job, job_version=version, rerun_of=rerun_of)


@pytest.mark.parametrize("since", [(), (completed(),), (failed(),)])
def test_a_rerun_of_the_present_job_is_taken_over_and_told_of_later(since: tuple[Fact, ...]) -> None:
    after = an_asset(*since).when(resume_job(NEXT_JOB, rerun_of=JOB)).then(restarted(1, NEXT_JOB))
    assert (after.job, after.jobs) == (NEXT_JOB, (JOB, NEXT_JOB))
    an_asset(*since, restarted(1, NEXT_JOB)).when(rerun()).then_nothing()


@pytest.mark.parametrize("command", [rerun(JOB, JOB), resume_job(JOB, rerun_of=JOB)])
def test_a_job_does_not_repeat_itself(command: Command[Asset] | Command[Asset]) -> None:
    for since in ((), (completed(),), (failed(),)):
        an_asset(*since).when(command).then_nothing()


def test_a_resumption_of_the_present_job_is_taken_over_and_told_of_later() -> None:
    an_asset(failed(5)).when(resume_job(JOB, 7)).then(restarted(7))
    an_asset(failed(5), restarted(7)).when(resume(7)).then_nothing()
    an_asset().when(resume_job(JOB, 7)).then_nothing()


@pytest.mark.parametrize("since", [(REMOVED,), (REMOVED, FILE_DELETED), (restarted(1, NEXT_JOB),)])
def test_no_other_job_goes_on(since: tuple[Fact, ...]) -> None:
    an_asset(*since).when(resume_job(19, rerun_of=JOB)).then_refused(Refused)
    an_asset(*since).when(resume_job(JOB, 9)).then_refused(Refused)


def test_a_requested_asset_is_generating_and_claims_its_path() -> None:
    asset = given(Asset, KEY).when(REQUEST).then(requested())
    assert (asset.state, asset.job, claimed(asset)) == (AssetState.GENERATING, JOB, True)
    an_asset().when(REQUEST).then_nothing()


def test_a_discovered_asset_is_completed_and_of_the_system() -> None:
    asset = given(Asset, KEY).when(DISCOVER).then(discovered())
    assert (asset.type, asset.state, asset.job, claimed(asset)) == (AssetType.SYSTEM, AssetState.COMPLETED, None, True)
    an_asset(first=discovered()).when(DISCOVER).then_nothing()


@pytest.mark.parametrize(
    ("since", "command", "then", "state"),
    [
        ((), complete(), (completed(),), AssetState.COMPLETED),
        ((), complete(elsewhere=1), (failed(reason="the job has made another file"),), AssetState.FAILED),
        ((), fail(), (failed(),), AssetState.FAILED),
        ((failed(),), resume(7), (restarted(7),), AssetState.GENERATING),
        ((completed(),), resume(7), (restarted(7),), AssetState.GENERATING),
        ((failed(), restarted(7)), complete(9), (completed(9),), AssetState.COMPLETED),
        ((), rerun(), (restarted(1, NEXT_JOB),), AssetState.GENERATING),
        ((failed(),), rerun(), (restarted(1, NEXT_JOB),), AssetState.GENERATING),
        ((completed(),), rerun(), (restarted(1, NEXT_JOB),), AssetState.GENERATING),
        ((failed(50), restarted(1, NEXT_JOB)), complete(4, NEXT_JOB), (completed(4),), AssetState.COMPLETED),
    ],
)
def test_an_outcome_of_the_present_job_is_followed(
    since: tuple[Fact, ...], command: Command[Asset], then: tuple[Fact, ...], state: AssetState
) -> None:
    after = an_asset(*since).when(command).then(*then)
    assert after.state is state


@pytest.mark.parametrize(
    ("since", "command"),
    [
        ((completed(),), complete()),
        ((failed(),), fail()),
        ((completed(),), fail(9)),  # it was broken off when it had its file
        ((completed(9),), fail(5)),
        ((failed(5), restarted(7)), fail(5)),
        ((failed(5), restarted(7), completed(9)), resume(7)),
        ((restarted(1, NEXT_JOB),), complete()),
        ((restarted(1, NEXT_JOB),), fail()),
        ((restarted(1, NEXT_JOB),), resume(99)),
        ((restarted(1, NEXT_JOB),), rerun()),
        ((), complete(job=NEXT_JOB)),
        ((), resume(5)),  # it was paused, and had not ended
        ((REMOVED,), complete()),
        ((REMOVED,), fail()),
        ((REMOVED,), resume(7)),
        ((REMOVED,), rerun()),
    ],
)
def test_what_is_no_news_changes_nothing(since: tuple[Fact, ...], command: Command[Asset]) -> None:
    """Outcomes come at least once, and one that was taken long ago may come after later ones."""
    an_asset(*since).when(command).then_nothing()


@pytest.mark.parametrize("since", [(), (completed(),), (failed(),)])
def test_a_renamed_asset_keeps_its_path(since: tuple[Fact, ...]) -> None:
    after = an_asset(*since).when(Asset.rename.on(KEY, "Other")).then(fact(events.Renamed, name="Other"))
    assert (after.name, after.path) == ("Other", PATH)
    an_asset(*since).when(Asset.rename.on(KEY, "Goal")).then_nothing()


def test_a_removed_asset_keeps_its_path_until_its_file_is_deleted() -> None:
    removed = an_asset().when(REMOVE).then(REMOVED)
    assert claimed(removed)
    deleted = an_asset(REMOVED).when(Asset.release_path.on(KEY)).then(FILE_DELETED)
    assert not deleted.claims()
    an_asset(REMOVED, FILE_DELETED).when(Asset.release_path.on(KEY)).then_nothing()
    an_asset().when(Asset.release_path.on(KEY)).then_nothing()


@pytest.mark.parametrize(("since", "job"), [((), None), ((restarted(1, NEXT_JOB),), JOB), ((completed(),), JOB)])
def test_a_plan_that_breaks_another_job_off_is_outdated(since: tuple[Fact, ...], job: int | None) -> None:
    an_asset(*since).when(Asset.remove.on(KEY, running_job=job)).then_refused(PlanOutdated)


@pytest.mark.parametrize("command", [REMOVE, Asset.rename.on(KEY, "x")])
def test_what_is_removed_is_not_found(command: Command[Asset]) -> None:
    an_asset(REMOVED).when(command).then_refused(NotFound)


def test_a_removal_that_was_looked_up_before_is_outdated() -> None:
    an_asset(REMOVED).when(Asset.remove.on(KEY, running_job=JOB).as_planned()).then_refused(PlanOutdated)


def test_an_asset_of_the_system_is_not_deleted_by_clients() -> None:
    an_asset(first=discovered()).when(Asset.remove.on(KEY, running_job=None)).then_refused(Refused)


def test_an_asset_is_forgotten_when_its_file_is_gone() -> None:
    gone = fact(events.AssetRemoved, file_left=False)
    assert not an_asset(first=discovered()).when(Asset.forget.on(KEY)).then(gone).claims()
    assert not an_asset(completed()).when(Asset.forget.on(KEY)).then(gone).claims()
    for since in ((), (failed(),), (REMOVED,)):
        an_asset(*since).when(Asset.forget.on(KEY)).then_nothing()


@pytest.mark.parametrize("change", [{"size": 4}, {"modified": THEN + timedelta(seconds=1)}])
def test_another_size_or_time_of_its_file_is_recorded(change: dict[str, Any]) -> None:
    command = Asset.change_file.on(KEY, **{"size": 3, "modified": THEN, **change})
    an_asset(first=discovered()).when(command).then(fact(events.FileChanged, **{"size": 3, "modified": THEN, **change}))
    an_asset(first=discovered()).when(Asset.change_file.on(KEY, size=3, modified=THEN)).then_nothing()


@pytest.mark.parametrize("since", [(), (failed(), restarted(1, NEXT_JOB)), (completed(), REMOVED), (REMOVED, FILE_DELETED)])
def test_a_snapshot_is_the_whole_asset(since: tuple[Fact, ...]) -> None:
    root = an_asset(*since).root
    assert root is not None
    again = Asset.from_snapshot(stream=root.id, version=root.version, state=root.snapshot())
    assert again.__dict__ == root.__dict__
