"""The origin when things go wrong: sessions that replace each other, killed processes, full disks, hostile encoders."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from projections.kernel.sizes import MIB
from tests.e2e.origin.conftest import Live
from tests.e2e.origin.pushing import CMAF, FMP4, FRAMES, Encoder, copied
from tests.support.product import Product
from tests.support.waiting import until
from tests.workers.origin.mp4 import AVC, fragment, init

ALL = list(range(FRAMES))
M3U8 = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{}\n"
PACKET = b"\x47" + bytes(187)


def open_upload(live: Live, path: str, *, session: int) -> socket.socket:
    """Begin a request whose body continues, and return its connection."""
    where = urlsplit(live.url)
    connection = socket.create_connection((where.hostname, where.port), timeout=60)
    head = [f"PUT {where.path}/{path} HTTP/1.1", f"Host: {where.netloc}", "Transfer-Encoding: chunked"]
    head.append(f"Authorization: Bearer {live.token(session)}")
    connection.sendall("\r\n".join([*head, "", ""]).encode())
    return connection


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def answer(connection: socket.socket) -> int:
    """Return the status of an answer; the rest of the answer is ignored."""
    return int(connection.recv(65_536).split()[1])


def has_begun(live: Live) -> bool:
    return live.get("status.php").status_code == 200


def is_refused(upload: socket.socket) -> bool:
    """Return True if the upload is refused after another piece of the body."""
    with suppress(BlockingIOError):
        upload.sendall(chunk(PACKET))
        return answer(upload) == 409
    return False


def test_the_first_write_of_a_later_session_ends_what_was_half_sent(origin: Product, start: Callable[..., Product]) -> None:
    """The later session writes in the same process, and in another one that shares the directory."""
    other = start()
    for number, elsewhere in enumerate((origin, other)):
        live = Live(origin, f"fence{number}")
        with closing(open_upload(live, "a.ts", session=4)) as upload:
            upload.sendall(chunk(PACKET * 100))
            until(partial(has_begun, live))
            assert Live(elsewhere, live.name).put("x.m3u8", b"#EXTM3U\n", session=5).status_code == 201
            upload.setblocking(False)
            until(partial(is_refused, upload))
        assert live.put("b.ts", PACKET, session=4).status_code == 409
        assert httpx.delete(live.url, headers=live.headers(4), timeout=60, verify=False).status_code == 409
        assert live.get("master.m3u8").status_code == 404, "nothing of it is published"


def test_a_later_encoder_takes_over_and_the_earlier_one_adds_nothing(origin: Product, film: Path, tmp_path: Path) -> None:
    live = Live(origin, "over")
    output = [*copied("0:v"), *FMP4, f"{live.url}/index.m3u8"]
    first = Encoder(film, output, token=live.token(1), rate=1, loops=-1)
    try:
        live.until_state("started")
        second = Encoder(film, output, token=live.token(2))
        assert second.ended() == 0
        live.until_state("stopped")
        before = live.get("archive/tracks/index.m3u8").text
        assert live.put("index0.m4s", b"x", session=1).status_code == 409
        assert first.process.poll() is None, "it tries on"
    finally:
        first.kill()
    assert live.get("archive/tracks/index.m3u8").text == before
    parts = before.split("#EXT-X-DISCONTINUITY\n")
    assert len(parts) == 2
    assert "../../1/" not in parts[1]
    earlier, later = live.sessions("archive/tracks/index.m3u8", tmp_path / "part.mp4")
    assert earlier == list(range(len(earlier)))
    assert later == ALL


def test_what_was_acknowledged_is_there_after_a_kill(start: Callable[..., Product], film: Path, tmp_path: Path) -> None:
    killed = start()
    live = Live(killed, "killed")
    encoder = Encoder(film, [*copied("0:v"), *CMAF, f"{live.url}/Streams(video)"], token=live.token(1), rate=2)
    try:
        until(lambda: live.get("tracks/video.m3u8").text.count("#EXTINF") >= 3)
        before = live.get("archive/tracks/video.m3u8").text
    finally:
        killed.kill()
        encoder.kill()
    again = Live(start(), "killed")
    assert again.get("archive/tracks/video.m3u8").text.startswith(before.rstrip())
    [shown] = again.sessions("archive/tracks/video.m3u8", tmp_path / "part.mp4")
    assert shown == list(range(len(shown)))
    assert len(shown) >= 75
    second = [*copied("0:v"), *CMAF, f"{again.url}/Streams(video)"]
    assert Encoder(film, second, token=again.token(2)).ended() == 0
    again.until_state("stopped")
    assert again.sessions("archive/tracks/video.m3u8", tmp_path / "part.mp4") == [shown, ALL]


def test_without_room_encoders_are_told_and_go_on_when_there_is_some(start: Callable[..., Product], home: Path) -> None:
    """The limit is more than the free space of the disk, and then less."""
    root = {"origin_root": str(home / "full")}
    full = start(**root, origin_free_gib="1000000")
    live = Live(full, "full")
    assert live.put("a.ts", PACKET).status_code == 507
    full.signal(signal.SIGTERM)
    assert full.ended() == 0
    live = Live(start(**root, origin_free_gib="0"), "full")
    assert live.put("a.ts", PACKET).status_code == 201
    assert live.put("i.m3u8", M3U8.format("a.ts").encode()).status_code == 201
    assert live.get("1/i/0.ts").content == PACKET


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of three megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)], capture_output=True, check=False).returncode:
        pytest.skip("not found: the right to mount a file system, which root has outside of containers")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_on_a_full_disk_nothing_half_written_is_played_and_it_goes_on_with_room(start: Callable[..., Product], small: Path) -> None:
    """Other files fill the disk too, so that removing recordings alone does not help."""
    live = Live(start(origin_root=str(small / "live"), origin_free_gib="0"), "full")
    (small / "other").write_bytes(bytes(MIB))
    sent = [fragment(number, data=bytes([number]) * (300 * 1024)) for number in range(11)]
    assert live.put("init.mp4", init(AVC)).status_code == 201
    taken: list[int] = []

    def send(number: int) -> int:
        status = live.put(f"s{number}.m4s", sent[number]).status_code
        if status == 201:
            taken.append(number)
            listed = "".join(f"#EXTINF:1,\ns{name}.m4s\n" for name in taken)
            status = live.put("i.m3u8", f'#EXTM3U\n#EXT-X-MAP:URI="init.mp4"\n{listed}'.encode()).status_code
        return status

    def played() -> list[bytes]:
        playlist = f"{live.url}/archive/tracks/i.m3u8"
        names = re.findall(r"^[^#\n].*\.m4s$", live.fetched(playlist).raise_for_status().text, re.MULTILINE)
        return [live.fetched(urljoin(playlist, name)).raise_for_status().content for name in names]

    statuses = [send(number) for number in range(10)]
    assert set(statuses) == {201, 507}
    assert statuses == sorted(statuses), "those that did not fit are refused"
    until(lambda: live.get("archive/tracks/i.m3u8").status_code == 200)  # it waits for sound
    before = played()
    assert before == [sent[number] for number in taken][: len(before)]
    assert len(before) >= statuses.count(201)
    (small / "other").unlink()
    until(lambda: send(10) == 201)
    assert played()[-1] == sent[10]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        *[
            (path, 400)
            for path in ("../x.m3u8", "a/../../x.ts", "%2e%2e/x.ts", "..%2fx.ts", ".hidden.ts", "a//x.ts", "a/b/c/d/e.ts")
        ],
        *[(path, 400) for path in ("x%00.ts", "x%0a.ts", "x y.ts", "x%5c..%5cy.ts", "%c3%a4.ts", "x" * 62 + ".ts")],
        *[(path, 415) for path in ("x.php", "x.mpd", "point.json", "x", "Streams()", "Streams(a", "Streams(../a)")],
    ],
)
def test_names_that_are_none_are_refused(origin: Product, home: Path, path: str, status: int) -> None:
    live = Live(origin, "names")
    where = urlsplit(live.url)
    with closing(socket.create_connection((where.hostname, where.port), timeout=60)) as connection:
        head = [f"PUT {where.path}/{path} HTTP/1.1".replace(" y.ts", "+y.ts"), f"Host: {where.netloc}", "Content-Length: 1"]
        connection.sendall("\r\n".join([*head, f"Authorization: Bearer {live.token(1)}", "", "x"]).encode())
        assert answer(connection) in (status, 400, 404)
    assert not (home / "origin" / "names").exists()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer x"},
        {"authorization": "Basic x"},
        {"authorization": "Bearer 1.1." + "A" * 43},
        {"api-key": "x"},
    ],
)
def test_without_its_token_nothing_is_taken(origin: Product, home: Path, headers: dict[str, str]) -> None:
    url = f"{origin.address}/origin/live/locked"
    for method, path in (("PUT", "/a.ts"), ("POST", "/Streams(a)"), ("DELETE", "/a.ts"), ("DELETE", "")):
        refused = httpx.request(method, url + path, content=b"x" * 100_000, headers=headers, timeout=60, verify=False)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")
    assert not (home / "origin" / "locked").exists()


def test_a_token_is_for_one_publishing_point_and_one_session(origin: Product) -> None:
    live = Live(origin, "mine")
    assert (
        httpx.put(
            f"{origin.address}/origin/live/other/a.ts", content=b"x", headers=live.headers(1), timeout=60, verify=False
        ).status_code
        == 401
    )
    assert live.put("a.ts", PACKET, headers={"x-session": "2"}).status_code == 400
    assert live.put("a.ts", PACKET, headers={"x-dvr-window": "-1"}).status_code == 400
    twice = [("authorization", f"Bearer {live.token(1)}")] * 2
    assert httpx.put(f"{live.url}/a.ts", content=b"x", headers=twice, timeout=60, verify=False).status_code == 400
    assert live.put("a.ts", PACKET, headers={"x-session": "1", "x-dvr-window": "30"}).status_code == 201


def endless(size: int) -> Iterator[bytes]:
    for _ in range(size // 65_536):
        yield bytes(65_536)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("big.m3u8", b"#EXTM3U\n" + b"#" * 10_000_000, 413),
        ("text.m3u8", b"hello", 400),
        ("binary.m3u8", b"\xff\xfe" * 100, 400),
        ("climbing.m3u8", M3U8.format("../../../etc/passwd.ts").encode(), 400),
        ("foreign.m3u8", M3U8.format("http://169.254.169.254/x.ts").encode(), 400),
        ("long.m3u8", M3U8.replace(":1,", ":1e9,").format("a.ts").encode(), 400),
        ("many.m3u8", b"#EXTM3U\n" + b"#EXTINF:1,\na.ts\n" * 15_001, 400),
        ("parts.m3u8", M3U8.replace("#EXTINF", "#EXT-X-BYTERANGE:1@0\n#EXTINF").format("a.ts").encode(), 400),
        ("locked.m3u8", M3U8.replace("#EXTINF", "#EXT-X-KEY:METHOD=AES-128\n#EXTINF").format("a.ts").encode(), 400),
        ("Streams(text)", b"hello, this is no stream", 400),
        ("Streams(nothing)", bytes(1000), 400),
        ("Streams(huge)", b"\xff\xff\xff\xffmoov" + bytes(1000), 400),
        ("Streams(half)", b"\0\0\0\x20moov", 400),
        ("Streams(early)", b"\0\0\0\x10moof" + bytes(8), 400),
        ("Streams(stray)", b"\0\0\0\x10mdat" + bytes(8), 400),
    ],
)
def test_what_cannot_be_played_is_refused(origin: Product, path: str, body: bytes, status: int) -> None:
    live = Live(origin, "nonsense")
    assert live.put(path, body).status_code == status
    assert live.get("master.m3u8").status_code == 404


def test_a_segment_without_end_is_cut_off(origin: Product) -> None:
    live = Live(origin, "endless")
    with closing(httpx.Client(timeout=60, verify=False)) as client:
        try:
            status = client.put(f"{live.url}/a.ts", content=endless(80 * 1024 * 1024), headers=live.headers(1)).status_code
        except httpx.TransportError:  # it went on sending after the answer
            status = 413
    assert status == 413
    assert live.put("i.m3u8", M3U8.format("a.ts").encode()).status_code == 201
    assert live.get("master.m3u8").status_code == 404


def test_files_that_no_playlist_lists_do_not_fill_the_disk(origin: Product, home: Path) -> None:
    live = Live(origin, "unlisted")
    with closing(httpx.Client(timeout=60, verify=False)) as client, ThreadPoolExecutor(4) as threads:

        def put(number: int) -> int:
            return client.put(f"{live.url}/{number}.ts", content=PACKET, headers=live.headers(1)).status_code

        statuses = set(threads.map(put, range(300)))
    assert statuses == {201, 429}
    assert len(list((home / "origin" / "unlisted" / "1" / "incoming").iterdir())) <= 64


def test_a_link_in_place_of_a_publishing_point_is_not_followed(origin: Product, home: Path, tmp_path: Path) -> None:
    (home / "origin").mkdir(exist_ok=True)
    (home / "origin" / "linked").symlink_to(tmp_path)
    assert Live(origin, "linked").put("a.ts", PACKET).status_code == 503
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_many_read_while_one_writes(origin: Product, start: Callable[..., Product], film: Path) -> None:
    """Two processes on one directory serve every segment that a playlist lists, complete and at once."""
    live, other = Live(origin, "read"), Live(start(), "read")
    encoder = Encoder(film, [*copied("0:v"), *FMP4, f"{live.url}/index.m3u8"], token=live.token(1), rate=1)

    def read(live: Live) -> int:
        count = 0
        with closing(httpx.Client(timeout=60, verify=False)) as client:
            while "#EXT-X-ENDLIST" not in (text := client.get(f"{live.url}/tracks/index.m3u8").text):
                for line in [line for line in text.splitlines() if line.endswith((".m4s", ".mp4"))][-2:]:
                    got = client.get(f"{live.url}/tracks/{line}")
                    assert got.status_code == 200
                    assert got.content[4:8] in (b"styp", b"moof", b"ftyp")
                    count += 1
        return count

    with ThreadPoolExecutor(8) as readers:
        read_by = list(readers.map(read, [live, other] * 4))
    assert encoder.ended() == 0
    assert min(read_by) > 0
    assert other.shown("archive/master.m3u8") == ALL
