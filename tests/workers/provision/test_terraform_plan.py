"""Readable plans of Terraform: what it would do, in a copy of the workdir."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.support.programs import program
from tests.workers.provision.site import Site

ORIGIN, ENCODER = {"name": "origin-1", "type": "origin"}, {"name": "encoder-1", "type": "encoder"}
BIG = {**ORIGIN, "size": "big"}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, program("terraform"))


def digest(site: Site) -> dict[str, str]:
    result = site.workdir.path.rglob("*")
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in result if path.is_file() and not path.is_symlink()}


async def test_a_plan_names_what_would_be_made_changed_and_removed(site: Site) -> None:
    plan = site.provisioner.plan
    assert await plan(site.desired(ORIGIN)) == '+ terraform_data.host["origin-1"]'
    assert (site.up, list((site.root / "work").iterdir())) == ([], [])
    await site.provide(ORIGIN, ENCODER)
    before = digest(site)
    assert await plan(site.desired(ORIGIN, ENCODER)) == ""
    assert await plan(site.desired(BIG, allow_updates=True)) == (
        '- terraform_data.host["encoder-1"]\n~ terraform_data.host["origin-1"]'
    )
    assert await plan(site.desired(BIG)) == (
        'unchanged, because updates are not allowed: terraform_data.host["origin-1"]\n- terraform_data.host["encoder-1"]'
    )
    assert sorted((await plan(site.desired())).splitlines()) == [
        '- terraform_data.host["encoder-1"]',
        '- terraform_data.host["origin-1"]',
    ]
    assert site.up == ["encoder-1", "origin-1"]
    assert digest(site) == before
    assert [path.name for path in (site.root / "work").iterdir()] == [site.workdir.path.name]


async def test_a_plan_that_fails_says_why_without_secrets(site: Site) -> None:
    (site.templates / "environment").write_text("TF_VAR_token=t0ps3cret\n")
    (site.templates / "default" / "check.tf").write_text(
        'resource "terraform_data" "x" {\n  lifecycle {\n    precondition {\n      condition = var.token == ""\n'
        '      error_message = "not with ${var.token}"\n    }\n  }\n}\n'
    )
    message = await site.provisioner.plan(site.desired(ORIGIN))
    assert message.startswith("it would fail: terraform plan failed: ")
    assert "not with ****" in message
    assert list((site.root / "work").iterdir()) == []
