"""`medialedger keys` and `medialedger client drm`, as a person calls them, on a database with its own master key."""

from __future__ import annotations

import asyncio
import os
import stat
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from api.cli import shell
from api.cli.main import main
from api.wiring.core import Core, core
from api.wiring.master_keys import key_ring
from tests.api.asking import logged
from tests.api.speke.documents import WIDEVINE, document_1
from tests.support.application import introduce

Said = tuple[int, str, str]
Call = Callable[[str], Awaitable[Said]]
KIDS = ["5a2e0d6c-30f1-4c4e-9d0b-0f6c6e9b1a01", "5a2e0d6c-30f1-4c4e-9d0b-0f6c6e9b1a02"]
KEYS = [bytes([number]) * 16 for number in (1, 2)]
HEAD = 'xmlns="urn:dashif:org:cpix" xmlns:p="urn:ietf:params:xml:ns:keyprov:pskc"'


def document(*pairs: tuple[str, bytes], content: str = 'contentId="match-17"', head: str = HEAD) -> str:
    secret = "<Data><p:Secret><p:PlainValue>{}</p:PlainValue></p:Secret></Data>"
    keys = "".join(f'<ContentKey kid="{kid}">{secret.format(b64encode(key).decode())}</ContentKey>' for kid, key in pairs)
    return f"<CPIX {content} {head}><ContentKeyList>{keys}</ContentKeyList></CPIX>"


BOTH = document(*zip(KIDS, KEYS, strict=True))


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture
def call(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run commands in `tmp_path`, which is also the home. Check that no output contains a key."""
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    async def called(line: str) -> Said:
        code = await asyncio.to_thread(main, line.split())
        shown = capsys.readouterr()
        assert not any(spelled in shown.out + shown.err for key in KEYS for spelled in (key.hex(), b64encode(key).decode()))
        assert shown.err.count("\n") <= 1
        return code, shown.out, shown.err

    return called


async def packager(call: Call) -> None:
    assert (await call("client add packager --role keys"))[0] == 0


async def test_imported_keys_are_exported_unchanged(call: Call, tmp_path: Path) -> None:
    await packager(call)
    written(tmp_path / "in.xml", BOTH)
    assert await call("keys import in.xml --client packager") == (0, "2 of 2 keys are new\n", "")
    assert await call("keys import in.xml --client packager") == (0, "0 of 2 keys are new\n", "")
    export = "keys export --client packager --content-id match-17 --output out.xml"
    assert await call(export) == (0, "2 keys, in the clear: out.xml\n", "")
    assert stat.S_IMODE((tmp_path / "out.xml").stat().st_mode) == 0o600
    text = (tmp_path / "out.xml").read_text()
    assert all(kid in text for kid in KIDS)
    assert all(b64encode(key).decode() in text for key in KEYS)
    assert await call("keys import out.xml --client packager") == (0, "0 of 2 keys are new\n", "")
    assert await call(export) == (0, "2 keys, in the clear: out.xml\n", "")
    assert (tmp_path / "out.xml").read_text() == text


async def test_an_export_of_keys_is_recorded(call: Call, tmp_path: Path, inner: Core) -> None:
    await introduce(inner, "packager", "keys")
    written(tmp_path / "in.xml", BOTH)
    assert (await call("keys import in.xml --client packager"))[0] == 0
    assert (await call("keys export --client packager --content-id match-17 --output out.xml"))[0] == 0
    traces = [event for event in await logged(inner) if event.topic == "content_key.delivered"]
    assert [(event.cause["actor"], event.data["speke_versions"]) for event in traces] == [
        (shell.invocation().cause.actor, ["export"])
    ] * 2


@pytest.mark.parametrize(
    ("text", "about"),
    [
        (document((KIDS[0], KEYS[1])), f"the kid {KIDS[0]} has another key"),
        (document((KIDS[0], KEYS[0]), (KIDS[0], KEYS[1])), f"the kid {KIDS[0]} has another key"),
        (document((KIDS[0], KEYS[0]), content='contentId="other"'), f"the kid {KIDS[0]} belongs to another content id"),
        (document(("7", KEYS[0])), "the ContentKey at line 1 has no kid that is a UUID"),
        (document((KIDS[0], b"short")), "the ContentKey at line 1 has a PlainValue that is not base64 of 16 bytes"),
        (document((KIDS[0], KEYS[0])).replace("PlainValue", "EncryptedValue"), "only keys in plain text can be imported"),
        (document((KIDS[0], KEYS[0])).replace("<ContentKey ", '<ContentKey explicitIV="AAAA" '), "explicitIV that is not base64"),
        (document((KIDS[0], KEYS[0]), content=""), "neither contentId nor id"),
        (document(), "no ContentKey"),
        (document((KIDS[0], KEYS[0]), head=""), "SPEKE-4002"),
        ("<a/>", "the root element is not CPIX"),
        ("<!DOCTYPE a><a/>", "SPEKE-4003"),
        ("", "SPEKE-4001"),
    ],
)
async def test_a_document_with_an_invalid_key_is_refused_completely(call: Call, tmp_path: Path, text: str, about: str) -> None:
    await packager(call)
    written(tmp_path / "first.xml", BOTH)
    assert (await call("keys import first.xml --client packager"))[0] == 0
    written(tmp_path / "in.xml", text)
    code, shown, error = await call("keys import in.xml --client packager")
    assert (code, shown) == (1, "")
    assert error.startswith("medialedger: ")
    assert about in error
    assert (await call("keys export --client packager --content-id match-17 --output out.xml"))[1].startswith("2 keys")


async def test_a_readable_document_and_an_unknown_client_are_refused(call: Call, tmp_path: Path) -> None:
    written(tmp_path / "in.xml", BOTH, mode=0o644)
    assert "chmod 600" in (await call("keys import in.xml --client packager"))[2]
    written(tmp_path / "in.xml", BOTH)
    assert await call("keys import in.xml --client packager") == (1, "", "medialedger: no client packager\n")
    code, _, error = await call("keys export --client packager --content-id x --output out.xml")
    assert (code, "has no content keys for" in error) == (1, True)
    assert not (tmp_path / "out.xml").exists()


async def test_the_master_key_is_replaced_and_every_key_stays(call: Call, tmp_path: Path) -> None:
    await packager(call)
    written(tmp_path / "in.xml", BOTH)
    await call("keys import in.xml --client packager")
    export = "keys export --client packager --content-id match-17 --output out.xml"
    await call(export)
    before, old = (tmp_path / "out.xml").read_text(), (tmp_path / "master.key").read_bytes()
    code, shown, _ = await call("keys rotate --new-key-file new.key")
    assert (code, shown) == (0, f"2 secrets are sealed under the new master key, which is in {tmp_path / 'master.key'}\n")
    assert (tmp_path / "master.key").read_bytes() == (tmp_path / "new.key").read_bytes() != old
    assert not (tmp_path / "master.key.previous").exists()
    await call(export)
    assert (tmp_path / "out.xml").read_text() == before
    code, _, error = await call("keys rotate --new-key-file new.key")
    assert (code, "the current master key" in error) == (1, True)
    (tmp_path / "master.key").write_bytes(old)
    assert "not the key that this database was encrypted with" in (await call(export))[2]
    assert "not the key that this database was encrypted with" in (await call("keys rotate --new-key-file other.key"))[2]
    assert (tmp_path / "master.key").read_bytes() == old


async def test_a_key_that_is_missing_is_an_error_where_the_database_has_one(call: Call, tmp_path: Path) -> None:
    await packager(call)
    written(tmp_path / "in.xml", BOTH)
    assert (await call("keys import in.xml --client packager"))[0] == 0
    (tmp_path / "master.key").rename(tmp_path / "kept")
    for line in (
        "keys import in.xml --client packager",
        "events list",
        "keys rotate --new-key-file new.key",
        "audit checkpoint --now",
    ):
        code, _, error = await call(line)
        assert (code, error.startswith(f"medialedger: there is no master key at {tmp_path / 'master.key'} ")) == (1, True)
        assert not (tmp_path / "master.key").exists(), "no new one is left in its place"
    assert not (tmp_path / "new.key").exists()
    (tmp_path / "kept").rename(tmp_path / "master.key")
    assert await call("keys import in.xml --client packager") == (0, "0 of 2 keys are new\n", "")


EXPORT = "keys export --client packager --content-id match-17 --output out.xml"


async def test_a_key_that_is_lost_is_replaced_and_what_it_encrypted_is_named(call: Call, tmp_path: Path) -> None:
    await packager(call)
    written(tmp_path / "in.xml", BOTH)
    await call("keys import in.xml --client packager")
    replace = "keys replace-lost --new-key-file new.key --yes"
    assert "so it is not lost" in (await call(replace))[2]
    (tmp_path / "master.key").rename(tmp_path / "kept")
    code, output, _ = await call(replace)
    assert (code, output.endswith("2 secrets cannot be decrypted with it: set them again\n")) == (0, True)
    for line in (EXPORT, "keys import in.xml --client packager"):
        code, _, error = await call(line)
        assert (code, "of the content match-17 cannot be decrypted with any master key of this machine; see " in error) == (1, True)
    assert not (tmp_path / "out.xml").exists()
    assert "2 are encrypted with another master key" in (await call("doctor"))[1]
    (tmp_path / "kept").rename(tmp_path / "master.key.previous")
    assert (await call(EXPORT))[0] == 0, "a copy turns up"
    assert (await call("keys rotate --new-key-file master.key"))[1].startswith("2 secrets")
    assert not (tmp_path / "master.key.previous").exists()
    assert (await call(EXPORT))[0] == 0
    assert "all can be decrypted with the master key" in (await call("doctor"))[1]


async def test_a_key_that_a_process_holds_is_not_lost(call: Call, tmp_path: Path, database_url: str) -> None:
    await packager(call)
    written(tmp_path / "in.xml", BOTH)
    await call("keys import in.xml --client packager")
    running = core(database_url, role=None, ring=key_ring(tmp_path / "master.key"))
    await running.start()
    try:
        (tmp_path / "master.key").rename(tmp_path / "kept")
        code, _, error = await call("keys replace-lost --new-key-file new.key --yes")
        assert (code, f"the process {os.getpid()} on " in error) == (1, True)
    finally:
        await running.stop()


async def test_a_dry_run_says_all_that_is_wrong(call: Call, tmp_path: Path) -> None:
    written(tmp_path / "good.xml", document_1(WIDEVINE).decode())
    assert await call("keys dry-run good.xml") == (0, "the document is valid: it would be answered\n", "")
    written(tmp_path / "bad.xml", document_1("81376844-f976-481e-a84e-cc25d39b0b33", iv="AAAA").decode())
    code, shown, error = await call("keys dry-run bad.xml")
    assert (code, error) == (1, "")
    assert "SPEKE-4004" in shown
    assert "SPEKE-4011" in shown
    assert "cannot be read" in (await call("keys dry-run nowhere.xml"))[2]


async def test_a_clients_drm_settings_are_shown_and_changed(call: Call) -> None:
    await packager(call)
    default = (
        "playready_la_url: \nwidevine_provider: \ncontent_id_in_pssh: False\n"
        "fairplay_uri_template: skd://{host}/{client}/{content_id}?kid={kid}\nfairplay_key_format_versions: 1\n"
        "fairplay_direct_plain_value: False\nfairplay_hex_form: False\n"
    )
    assert await call("client drm packager") == (0, default, "")
    changed = default.replace("pssh: False", "pssh: True").replace("widevine_provider: ", "widevine_provider: acme")
    assert await call("client drm packager --widevine-provider acme --content-id-in-pssh") == (0, changed, "")
    code, _, error = await call("client drm packager --playready-la-url no-address")
    assert (code, "playreadyLaUrl" in error) == (1, True)
    assert await call("client drm packager --no-content-id-in-pssh --widevine-provider=") == (0, default, "")
    assert await call("client drm nobody") == (1, "", "medialedger: There is no client nobody\n")
