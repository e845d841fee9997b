"""The engine with media in a bucket: steps read and publish, on machines that share no directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from projections.job.queue import JobNumberSequence
from tests.projections.log.helpers import until
from tests.support.engine import Engine, process
from tests.support.s3 import client, new_bucket
from tests.support.s3 import moto_endpoint as moto_endpoint
from tests.support.s3 import versity_endpoint as versity_endpoint
from workers.ports.buckets import BucketAddress


@pytest.fixture(params=["moto", "versitygw"])
def address(request: pytest.FixtureRequest) -> BucketAddress:
    return new_bucket(request.getfixturevalue("moto_endpoint" if request.param == "moto" else "versity_endpoint"))


def read(address: BucketAddress, path: str) -> str:
    stored = client(address).get_object(Bucket=address.bucket, Key=f"{address.prefix}/{path}")
    return str(stored["Body"].read().decode())


def left_over(address: BucketAddress) -> list[str]:
    """Return the objects in the bucket that are neither published nor notes of publishers."""
    bucket = client(address)
    keys = [each["Key"] for each in bucket.list_objects_v2(Bucket=address.bucket)["Contents"]]
    uploads = [each["Key"] for each in bucket.list_multipart_uploads(Bucket=address.bucket).get("Uploads", ())]
    return [key for key in keys if "/.jobs/" in key] + uploads


async def test_steps_read_and_publish_on_several_machines(
    database_url: str, migrated: tuple[str, str | None], tmp_path: Path, address: BucketAddress
) -> None:
    client(address).put_object(Bucket=address.bucket, Key=f"{address.prefix}/match/a.txt", Body=b"a file")
    first_machine, two = tmp_path / "one", tmp_path / "two"
    async with (
        process(database_url, migrated[1], media_root=first_machine, media_bucket=address, steps=1) as inner,
        process(database_url, migrated[1], media_root=two, media_bucket=address, steps=1),
    ):
        engine = Engine(inner, JobNumberSequence(inner.database))
        reading = [await engine.accept("reading", file="match/a.txt") for _ in range(6)]
        none, chain = await engine.accept("reading", file="match/none.txt"), await engine.accept("chain")
        for number in (*reading, none, chain):
            job = await engine.ended(number)
            assert not job.failed, job.reason
        await until(lambda: not left_over(address))
    assert {read(address, f"match/{number}-read.txt") for number in reading} == {"a file and kept"}
    assert read(address, f"match/{none}-read.txt") == "nothing"
    assert read(address, f"match/{chain}-3.txt") == f"{chain} 3 1\n"
    assert not (first_machine / "match").exists()


async def test_a_bucket_that_refuses_fails_the_job_and_says_so(
    database_url: str, migrated: tuple[str, str | None], tmp_path: Path, address: BucketAddress
) -> None:
    gone = BucketAddress(
        "there-is-no-such-bucket", "", address.endpoint, access_key=address.access_key, secret_key=address.secret_key
    )
    async with process(database_url, migrated[1], media_root=tmp_path / "one", media_bucket=gone) as inner:
        engine = Engine(inner, JobNumberSequence(inner.database))
        await engine.set("retry_limit", 0)
        job = await engine.ended(await engine.accept("chain", content_id="chain"))
    assert (job.failed, "the media store refuses: NoSuchBucket" in job.reason) == (True, True)
