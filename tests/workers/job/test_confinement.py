"""The limits of steps and their programs: they cannot be root, get privileges, use the network without need, or take the whole
machine."""

from __future__ import annotations

import json
import os
import pwd
import resource
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import IO, Any

import pytest

from domain.job.values import Output
from domain.kernel.ids import new_id
from projections.job.queue import QueuedRun
from tests.support.step_hosts import TRIAL, Listener, order, plugin
from tests.support.waiting import ROOT
from workers.adapters.step_account import NAME, program_confinement, step_account
from workers.adapters.system_account import system_account
from workers.job import folders
from workers.job.folders import ForeignFile
from workers.job.media_paths import JOBS
from workers.job.protocol import Finished
from workers.job.step_process_pool import StepProcessPool
from workers.job.step_processes import step_fork_server
from workers.job.workspaces import OutputMissing, Workspaces
from workers.kernel import landlock
from workers.kernel.confined_program import arguments
from workers.kernel.confinement import DESCRIPTORS, FILE, MEMORY, NICE, OPEN_FILES, OPEN_NETWORK, PROCESSES, environment
from workers.kernel.fork_client import ForkServer

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has other accounts")
AS_NOBODY = """
import ctypes, os, pwd, resource, socket, sys
from workers.kernel.confinement import OPEN_NETWORK, Confinement, confine
nobody = pwd.getpwnam("nobody")
os.setgroups([]); os.setresgid(*[nobody.pw_gid] * 3); os.setresuid(*[nobody.pw_uid] * 3)
lacks = confine(Confinement(network=False, write=["/tmp"]))
try:
    socket.socket().connect(("127.0.0.1", int(sys.argv[1])))
    reached = True
except OSError:
    reached = False
open(sys.argv[2], "w").close()
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
own = os.stat(sys.argv[2]).st_uid == os.getuid()
print(OPEN_NETWORK not in lacks, reached, status["CapEff"].strip(), status["NoNewPrivs"].strip(), own)
"""


@pytest.fixture(scope="module", autouse=True)
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with plugin(tmp_path_factory.mktemp("installed"), trial=TRIAL):
        yield


@pytest.fixture(scope="module")
async def step_server(trial: None) -> AsyncIterator[ForkServer]:
    async with step_fork_server() as server:
        yield server


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with a master key, in a directory that is closed to others."""
    home = tmp_path_factory.mktemp("home")
    home.chmod(0o700)
    (home / "master.key").write_bytes(bytes(32))
    (home / "master.key").chmod(0o600)
    return home


@pytest.fixture(scope="module")
def account(home: Path) -> tuple[pwd.struct_passwd | None, Sequence[int]]:
    return step_account(home / "media", jobs=JOBS, home=home)


@pytest.fixture(scope="module", params=[False, True], ids=["without network", "with network"])
def network(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
async def pool(
    network: bool, home: Path, account: tuple[pwd.struct_passwd | None, Sequence[int]], step_server: ForkServer
) -> AsyncIterator[StepProcessPool]:
    made = StepProcessPool(
        media_root=home / "media",
        allow=[],
        account=account[0],
        groups=account[1],
        needs_network=lambda *_: network,
        fork_server=step_server,
    )
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def seen(pool: StepProcessPool, text: str = "") -> dict[str, Any]:
    ended = await pool.run(order("inspects", text=text), Listener())
    assert isinstance(ended, Finished), ended
    return dict(ended.result.metadata)


@needs_root
async def test_a_step_and_its_programs_have_an_account_of_their_own(pool: StepProcessPool) -> None:
    abilities = await seen(pool)
    user = pwd.getpwnam(NAME)
    for status in (abilities["status"], abilities["status of a program"]):
        assert status["Uid"].split() == [str(user.pw_uid)] * 4
        assert status["Gid"].split() == [str(user.pw_gid)] * 4
        assert status["CapEff"] == status["CapPrm"] == "0" * 16
    assert user.pw_uid != pwd.getpwnam("medialedger").pw_uid


async def test_a_step_and_its_programs_have_limits_and_get_no_privileges(pool: StepProcessPool) -> None:
    abilities = await seen(pool)
    for status in (abilities["status"], abilities["status of a program"]):
        assert status["NoNewPrivs"] == "1"
    assert abilities["nice"] == min(os.nice(0) + NICE, 19)
    limits = {int(kind): most for kind, most in abilities["limits"].items()}
    assert limits[resource.RLIMIT_CORE] == 0
    assert 0 < limits[resource.RLIMIT_AS] <= MEMORY
    assert 0 < limits[resource.RLIMIT_FSIZE] <= FILE
    assert 0 < limits[resource.RLIMIT_NOFILE] <= DESCRIPTORS
    assert limits[resource.RLIMIT_CPU] > 0
    assert os.geteuid() != 0 or 0 < limits[resource.RLIMIT_NPROC] <= PROCESSES


@needs_root
async def test_the_secrets_of_the_home_are_out_of_reach(pool: StepProcessPool, home: Path) -> None:
    assert (await seen(pool, str(home / "master.key")))["reads"] is False
    assert (await seen(pool, str(home)))["lists"] is False
    (home / "media" / "a.bin").write_bytes(b"x")
    (home / "media" / "a.bin").chmod(0o640)
    os.chown(home / "media" / "a.bin", -1, pwd.getpwnam(NAME).pw_gid)
    assert (await seen(pool, str(home / "media" / "a.bin")))["reads"] is True
    assert (await seen(pool, str(home / "media")))["writes"] is False


@needs_root
async def test_only_workflows_that_need_it_have_the_network(pool: StepProcessPool, port: int, network: bool) -> None:
    assert (await seen(pool, f"127.0.0.1:{port}"))["connects"] is network


@needs_root
async def test_what_a_step_has_made_is_published_for_the_group_and_nobody_else(pool: StepProcessPool, home: Path) -> None:
    ended = await pool.run(order("makes_files"), Listener())
    assert isinstance(ended, Finished)
    await Workspaces(home / "media").publish(QueuedRun(17, 2, 1), ended.outputs, client="admin")
    published = home / "media/film/a/one.txt"
    group = pwd.getpwnam(NAME).pw_gid
    for path, mode in ((published, 0o640), (published.parent, 0o750), (home / "media/film", 0o750), (home / "media", 0o750)):
        status = path.stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (0, group, mode), path
    assert (await seen(pool, str(published)))["reads"] is True


@needs_root
@pytest.mark.parametrize("root_group", [0, 65534], ids=["of root", "of another group"])
async def test_below_a_root_of_another_group_a_step_reads_what_the_one_before_has_made(tmp_path: Path, root_group: int) -> None:
    media = tmp_path / "media"
    media.mkdir(mode=0o755)
    os.chown(media, 0, root_group)
    user, _ = step_account(media, jobs=JOBS, home=tmp_path / "home")
    assert user is not None
    run = media / JOBS / "17" / "1" / "1"
    run.mkdir(parents=True)
    outputs = [Output(path=name, name=place, size=1, sha256="0") for name, place in (("a", f"{JOBS}/17/files/a"), ("b", "film/b"))]
    for output in outputs:
        (run / output.path).write_text("x")
        os.chown(run / output.path, user.pw_uid, user.pw_gid)
    await Workspaces(media).publish(QueuedRun(17, 1, 1), outputs, client="admin")
    made = [(media / output.name).stat() for output in outputs]
    assert [(status.st_uid, status.st_gid) for status in made] == [(0, user.pw_gid), (0, root_group or user.pw_gid)]


@needs_root
async def test_a_folder_whose_maker_died_before_it_had_its_mode_is_opened_to_steps_and_readers(
    pool: StepProcessPool, home: Path
) -> None:
    media, group = home / "media", pwd.getpwnam(NAME).pw_gid
    for parts in ((new_id().hex, "a"), (".inputs", new_id().hex, "version")):
        media.joinpath(*parts).mkdir(parents=True)
        for depth in range(1, len(parts) + 1):
            media.joinpath(*parts[:depth]).chmod(0o700)
        with folders.folder(media, parts, make=True):
            pass
        made = media.joinpath(*parts)
        (made / "file").touch()
        os.chown(made / "file", 0, group)
        (made / "file").chmod(0o640)
        assert (await seen(pool, str(made / "file")))["reads"] is True
        assert (made.stat().st_gid, stat.S_IMODE(made.stat().st_mode)) == (group, 0o750)
    assert stat.S_IMODE((media / JOBS).stat().st_mode) == 0o700


@needs_root
async def test_a_folder_keeps_the_mode_that_an_operator_gave_it(pool: StepProcessPool, home: Path) -> None:
    chosen = home / "media" / new_id().hex
    chosen.mkdir()
    chosen.chmod(0o2755)
    with folders.folder(home / "media", (chosen.name, "a"), make=True):
        pass
    assert [stat.S_IMODE(path.stat().st_mode) for path in (chosen, chosen / "a")] == [0o2755, 0o750]


@needs_root
async def test_a_file_that_a_dead_worker_has_moved_is_taken_over(
    tmp_path: Path, account: tuple[pwd.struct_passwd | None, Sequence[int]]
) -> None:
    user = account[0]
    assert user is not None
    media = tmp_path / "media"
    place = media / "film" / "a"
    place.parent.mkdir(parents=True)
    (media / JOBS / "17" / "1" / "1").mkdir(parents=True)
    os.chown(media / JOBS, user.pw_uid, user.pw_gid)
    place.write_text("x")
    place.chmod(0o600)
    os.chown(place, user.pw_uid, user.pw_gid)
    output = Output(path="a", name="film/a", size=1, sha256="0")
    await Workspaces(media).publish(QueuedRun(17, 1, 1), [output], client="admin")
    status = place.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (0, user.pw_gid, 0o640)


@needs_root
@pytest.mark.parametrize(
    "planted", ["the file", "its folder", "the folder of the task", "a pipe", "a file of another user", "a file of root"]
)
async def test_a_link_in_place_of_an_output_leads_root_nowhere(
    tmp_path: Path, account: tuple[pwd.struct_passwd | None, Sequence[int]], planted: str
) -> None:
    user = account[0]
    assert user is not None
    victim = tmp_path / "victim"
    (victim / "1").mkdir(parents=True)
    for place in (victim / "made", victim / "1" / "made"):
        place.write_text("of root")
    media = tmp_path / "media"
    run = media / JOBS / "17" / "2" / "1"
    run.mkdir(parents=True)
    os.chown(media / JOBS, user.pw_uid, user.pw_gid)
    if planted == "the file":
        (run / "made").symlink_to(victim / "made")
    elif planted == "its folder":
        run.rmdir()
        run.symlink_to(victim)
    elif planted == "the folder of the task":
        run.rmdir()
        run.parent.rmdir()
        run.parent.symlink_to(victim)
    elif planted == "a pipe":
        os.mkfifo(run / "made")
    elif planted == "a file of root":
        os.link(victim / "made", run / "made")
    else:
        (run / "made").write_text("of root")
        os.chown(run / "made", 65534, 65534)
    workspaces = Workspaces(media)
    with pytest.raises((ForeignFile, OutputMissing, NotADirectoryError, OSError)):
        await workspaces.publish(QueuedRun(17, 2, 1), [Output(path="made", name="film/made", size=7, sha256="0")], client="admin")
    await workspaces.discard(QueuedRun(17, 2, 1))
    assert not (media / "film" / "made").exists()
    assert [place.read_text() for place in (victim / "made", victim / "1" / "made")] == ["of root", "of root"]


@needs_root
def test_a_user_who_is_not_root_gives_up_the_network_too(port: int, tmp_path: Path) -> None:
    place = Path("/tmp") / f"medialedger-nobody-{os.getpid()}"
    command = [sys.executable, "-c", AS_NOBODY, str(port), str(place)]
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, cwd="/")
    place.unlink(missing_ok=True)
    assert done.returncode == 0, done.stderr
    confined, reached, capabilities, no_new, own = done.stdout.split()
    assert (reached, capabilities, no_new, own) == (str(confined == "False"), "0" * 16, "1", "True")


@needs_root
def test_the_media_root_in_the_home_is_closed_to_others_and_one_elsewhere_stays_as_it_is(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for media in (home / "media", elsewhere):
        media.mkdir(parents=True)
        media.chmod(0o755)
        step_account(media, jobs=JOBS, home=home)
        assert (media / JOBS).stat().st_uid == system_account(NAME).pw_uid  # type: ignore[union-attr]
    assert stat.S_IMODE((home / "media").stat().st_mode) == 0o750
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o755


WARNED = """
import asyncio, sys
from pathlib import Path
from workers.job.step_process_pool import StepProcessPool

async def main():
    pool = StepProcessPool(media_root=Path(sys.argv[1]), allow=[])
    await pool.start()
    async with asyncio.timeout(60):
        while pool.warning is None:
            await asyncio.sleep(0.05)
    print(pool.warning)
    await pool.stop()

asyncio.run(main())
"""


@needs_root
def test_where_the_system_allows_no_network_namespace_the_pool_warns(tmp_path: Path) -> None:
    """The test runs as root without the capability for network namespaces, as in many containers."""
    without = ("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin")
    ran = subprocess.run([*without, sys.executable, "-c", WARNED, str(tmp_path)], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == OPEN_NETWORK, ran.stderr


ORDINARY = """
import asyncio, json, os, shutil, sys
from pathlib import Path
from tests.support.without_landlock import without_landlock
from tests.support.step_hosts import TRIAL, Listener, order, plugin
from workers.job.step_process_pool import StepProcessPool
from workers.kernel.confinement import Places, conceal

async def main(home, layers):
    media, installed = home / "media", home / "installed"
    for folder in (media, installed):
        folder.mkdir()
    (media / "film.bin").write_text("x")
    for secret in ("master.key", "running.json"):
        (home / secret).write_text("secret")
    if "landlock" not in layers:
        without_landlock()
    if "concealed" in layers:
        conceal()
    with plugin(installed, trial=TRIAL):
        print(json.dumps([await abilities(home, network) for network in (False, True)]))

async def abilities(home, network):
    me, media = f"/proc/{os.getpid()}", home / "media"
    pool = StepProcessPool(media_root=media, allow=[], places=Places(hidden=(str(home),)), needs_network=lambda *_: network)
    await pool.start()
    async def seen(path, what):
        ended = await pool.run(order("inspects", text=str(path)), Listener())
        return ended.result.metadata[what]
    found = {
        "read": [await seen(path, "opens") for path in (media / "film.bin", "/proc/self/status", "/etc/hosts")],
        "files": [await seen(path, "opens") for path in (home / "master.key", home / "running.json")],
        "process": [await seen(path, "opens") for path in (f"{me}/environ", f"{me}/mem", f"{me}/cwd/etc/hosts")],
        "lists": [await seen(path, "lists") for path in (media, home, home.parent)],
        "writes": [await seen(path, "writes") for path in (media / ".jobs", media, home)],
        "made": type(await pool.run(order("makes_files"), Listener())).__name__,
        "warning": pool.warning or "",
    }
    await pool.stop()
    shutil.rmtree(media / ".jobs")
    return found

asyncio.run(main(Path(sys.argv[1]), sys.argv[2].split("+")))
"""
needs_landlock = pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")


@pytest.fixture
def ordinary_home(account: tuple[pwd.struct_passwd | None, Sequence[int]]) -> Iterator[Path]:
    """Yield a home of a user who is not root, in a place that this user can reach.

    If the tests run as root, the user is the account of steps, which can reach Python.
    """
    home = Path(mkdtemp(prefix="medialedger-ordinary-", dir="/tmp"))
    if account[0] is not None:
        os.chown(home, account[0].pw_uid, account[0].pw_gid)
    yield home
    rmtree(home, ignore_errors=True)


def as_ordinary_user(home: Path, *, layers: str) -> Sequence[dict[str, Any]]:
    """Run the product as an ordinary user, whose processes then are those of steps. Return what steps can do that need no network,
    and those that need it."""
    owner = home.stat()
    user: dict[str, Any] = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    command = [sys.executable, "-c", ORDINARY, str(home), layers]
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.defpath, "MEDIALEDGER_ADMIN_API_KEY": "a-secret"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd="/", timeout=120, **user)
    assert ran.returncode == 0, ran.stderr
    without_network, with_network = json.loads(ran.stdout)
    return without_network, with_network


@needs_landlock
@pytest.mark.parametrize("layers", ["landlock+concealed", "landlock"])
def test_a_step_of_an_ordinary_user_reaches_no_secret_of_the_product(ordinary_home: Path, layers: str) -> None:
    for abilities in as_ordinary_user(ordinary_home, layers=layers):
        assert (abilities["read"], abilities["made"]) == ([True] * 3, "Finished")
        assert (abilities["files"], abilities["process"]) == ([False] * 2, [False] * 3)
        assert abilities["lists"] == [True, False, False]
        assert abilities["writes"] == [True, False, False]
        assert OPEN_FILES not in abilities["warning"]


def test_without_landlock_processes_stay_closed_and_a_warning_tells_of_files(ordinary_home: Path) -> None:
    for abilities in as_ordinary_user(ordinary_home, layers="concealed"):
        assert (abilities["files"], abilities["process"]) == ([True] * 2, [False] * 3)
        assert abilities["made"] == "Finished"
        assert OPEN_FILES in abilities["warning"]


@needs_landlock
def test_a_program_of_an_encoder_reads_what_it_is_handed_and_no_other_file(tmp_path: Path) -> None:
    """The files may be read by any user, so that no account protects them in place of Landlock."""
    cat = Path("/bin/cat").resolve()
    public = Path(mkdtemp(prefix="medialedger-public-", dir="/tmp"))
    public.chmod(0o755)
    (public / "film").write_text("of the film")
    (public / "film").chmod(0o644)

    def shown(*names: object, handed: IO[str] | None = None) -> str:
        command = arguments(program_confinement(cat), [str(cat), *map(str, names)], parent=os.getpid())
        return subprocess.run(
            command, env=environment(), stdin=handed, capture_output=True, text=True, timeout=120, check=False
        ).stdout

    try:
        assert shown("/proc/sys/kernel/ostype") == "Linux\n"
        assert shown(public / "film") == ""
        with (public / "film").open() as film:
            assert shown(handed=film) == "of the film"
    finally:
        rmtree(public)


def test_a_directory_that_holds_a_secret_is_opened_without_it(tmp_path: Path) -> None:
    """The home is in the directory of the product, as after a `make run`, or next to a virtual environment."""
    for name in ("product/module", "product/home/media", "product/home/venv", "product/other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "product/key").touch()
    (tmp_path / "product/link").symlink_to(tmp_path / "product/home")
    secrets = [str(tmp_path / "product/home"), str(tmp_path / "product/key")]

    def opened(name: str) -> dict[str, bool]:
        return {
            os.path.relpath(path, tmp_path): bool(rights & 1) for path, rights in landlock.visible(str(tmp_path / name), secrets)
        }

    assert opened("product") == {"product": False, "product/module": True, "product/other": True}
    assert opened("product/other") == {"product/other": True}
    assert opened("product/home/venv") == {"product/home/venv": True}, "it is named"
    assert opened("product/home") == opened("product/key") == opened("product/link") == {}
