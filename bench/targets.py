"""Uploads to publishing targets, compared with the programs that an operator would use by hand, in turns against the same
servers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.ground import Ground
from bench.report import Result, Table, Target, middle
from bench.upload_servers import PASSWORD, USER
from tests.support.s3 import KEY, SECRET, client, serving, versitygw
from workers.ports.buckets import BucketAddress

MIB = 1024 * 1024
_FLAT = 64.0
"""The MiB that an upload may add to the memory of its process, whatever the size of the file."""


def targets(ground: Ground) -> Result:
    """(z) One file to each target, and by curl, sftp, aws and cp."""
    folder = ground.home / "targets"
    folder.mkdir()
    size = (128 if ground.effort.quick else 1024) * MIB
    file = folder / "film.mp4"
    subprocess.run(["dd", "if=/dev/urandom", f"of={file}", "bs=1M", f"count={size // MIB}", "status=none"], check=True)
    with file.open("rb") as opened:
        digest = file_digest(opened, "sha256").hexdigest()
    seen: dict[str, dict[str, list[float]]] = {}
    with ground.process("uploads", ["bench.upload_servers", str(folder)]) as ports, _bucket(folder) as bucket:
        pairs = _pairs(json.loads(ports), folder, bucket)
        for _ in range(ground.effort.rounds):
            for name, (order, command) in pairs.items():
                cells = seen.setdefault(name, {"ours": [], "theirs": [], "grown": []})
                cells["theirs"].append(_timed(command))
                ours = _uploaded({**order, "file": str(file), "size": size, "sha256": digest})
                cells["ours"].append(ours["seconds"])
                cells["grown"].append(ours["after"] - ours["before"])
                _removed(folder)
    return _result(seen, size)


def _pairs(
    servers: Mapping[str, Any], folder: Path, bucket: BucketAddress | None
) -> Mapping[str, tuple[Mapping[str, Any], Sequence[str]]]:
    """Return the order of our upload and the command of the other program, by target."""
    file, out = folder / "film.mp4", folder / "out"
    out.mkdir()
    http, login = f"http://127.0.0.1:{servers['http']}", f"{USER}@127.0.0.1"
    known_hosts = folder / "known"
    known_hosts.write_text(f"[127.0.0.1]:{servers['sftp']} {servers['hostKey']}")
    ssh = {"host": "127.0.0.1", "port": servers["sftp"], "path": "/out", "username": USER, "password": PASSWORD}
    batch = folder / "batch"
    batch.write_text(f"put {file} /out/theirs\n")
    options = ("-i", str(folder / "key"), "-o", f"UserKnownHostsFile={known_hosts}", "-o", "IdentitiesOnly=yes", "-F", "none")
    pairs: dict[str, tuple[Mapping[str, Any], Sequence[str]]] = {
        "HTTP, curl": (
            {"target": 7, "config": {"url": f"{http}/{{contentId}}"}},
            ("curl", "-sf", "-T", str(file), f"{http}/theirs"),
        ),
        "SFTP, sftp": (
            {"target": 6, "config": {**ssh, "hostKey": servers["hostKey"]}},
            ("sftp", "-q", "-b", str(batch), "-P", str(servers["sftp"]), *options, login),
        ),
        "FILESYSTEM, cp, sync, sha256sum": (
            {"target": 8, "config": {"path": "out"}, "root": str(folder)},
            ("sh", "-c", f"cp {file} {out}/theirs && sync {out}/theirs && sha256sum {out}/theirs >&2"),
        ),
    }
    if bucket is not None:
        config = {"endpoint": bucket.endpoint, "bucket": bucket.bucket, "accessKeyId": KEY, "secretAccessKey": SECRET}
        boto = (sys.executable, "-c", _BOTO, str(file), str(bucket.endpoint), bucket.bucket)
        pairs["S3, boto3"] = ({"target": 5, "config": config}, boto)
    return pairs


_BOTO = f"""
import sys, time, boto3
keys = dict(aws_access_key_id="{KEY}", aws_secret_access_key="{SECRET}")
store = boto3.client("s3", endpoint_url=sys.argv[2], region_name="us-east-1", **keys)
begun = time.perf_counter()
store.upload_file(sys.argv[1], sys.argv[3], "theirs")
print(time.perf_counter() - begun)
"""
"""The upload that `aws s3 cp` does, with its own library. The time does not include its imports."""


@contextmanager
def _bucket(folder: Path) -> Iterator[BucketAddress | None]:
    """Create a bucket in versitygw; yield None if versitygw is not installed."""
    program = versitygw()
    if program is None:
        yield None
        return
    (folder / "s3").mkdir()
    with serving(program, folder / "s3") as endpoint:
        address = BucketAddress("bench", "", endpoint, access_key=KEY, secret_key=SECRET)
        client(address).create_bucket(Bucket=address.bucket)
        yield address


def _timed(command: Sequence[str]) -> float:
    """Return the seconds that a command takes, as it prints them if it does."""
    begun = perf_counter()
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(output) if output[:1].isdigit() else perf_counter() - begun


def _uploaded(order: Mapping[str, Any]) -> Mapping[str, float]:
    made = subprocess.run(
        [sys.executable, "-m", "bench.uploading"], input=json.dumps(order), capture_output=True, text=True, check=True
    )
    document: Mapping[str, float] = json.loads(made.stdout)
    return document


def _removed(folder: Path) -> None:
    for path in (*(folder / "out").iterdir(), *(folder / "s3").glob("bench/*.mp4"), *(folder / "s3").glob("bench/theirs")):
        path.unlink()


def _result(seen: Mapping[str, Mapping[str, list[float]]], size: int) -> Result:
    table = Table(f"(z) {size // MIB} MiB to targets", ("", "ours MiB/s", "theirs MiB/s", "ratio", "memory grown MiB"))
    goals = []
    for name, cells in seen.items():
        ours, theirs, grown = (middle(cells[side]) for side in ("ours", "theirs", "grown"))
        table.add(name, size / MIB / ours, size / MIB / theirs, theirs / ours, grown)
        goals += [Target(f"rate, {name}", theirs / ours, 0.8, "x"), Target(f"memory, {name}", grown, _FLAT, "MiB", at_most=True)]
    return Result("targets", [table], goals, {name: dict(cells) for name, cells in seen.items()})
