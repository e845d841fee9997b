"""`http_fetch_verify`: downloads a file, checks it, and publishes it in the folder of its content."""

from __future__ import annotations

import os
import shutil
from time import monotonic
from typing import Annotated, Final
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from workers.job.context import StepContext, StepFailed, StepResult
from workers.job.media_paths import Segment, segment_fault
from workers.job.workflow import JobParameters, Step, WebUrl, Workflow
from workers.job.workflows.resumable import ResumableDownload

_HEXADECIMAL: Final = frozenset("0123456789abcdef")
_DEFAULT_NAME: Final = "download"


def _digest(text: str) -> str:
    lower = text.lower()
    if len(lower) != 64 or not _HEXADECIMAL.issuperset(lower):
        raise PydanticCustomError("sha256", "must be 64 hexadecimal digits")
    return lower


Sha256 = Annotated[str, AfterValidator(_digest)]
"""A SHA-256 digest as 64 hexadecimal digits in lower case."""


class HttpFetchVerify(JobParameters):
    """The parameters of `http_fetch_verify`. Without `file_name`, the name is the last part of the URL's path."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"content_id": "match-17", "url": "https://origin.example/match.mp4", "size": 3000000}]}
    )

    url: WebUrl = Field(description="The http or https address of the file.", examples=["https://origin.example/match.mp4"])
    sha256: Sha256 | None = Field(None, description="SHA-256 that the file must have, 64 hexadecimal digits.")
    size: Annotated[int, Field(ge=0)] | None = Field(None, description="Bytes that the file must have.")
    file_name: Segment | None = Field(
        None, description="Name of the file in the folder; by default the last part of the URL's path."
    )

    @property
    def stored_as(self) -> str:
        if self.file_name is not None:
            return self.file_name
        name = unquote(urlsplit(self.url).path.rpartition("/")[2])
        return name if segment_fault(name) is None else _DEFAULT_NAME


def fetch(context: StepContext[HttpFetchVerify]) -> StepResult:
    parameters = context.parameters
    begun = monotonic()
    download = ResumableDownload(context, parameters.url, size=parameters.size)
    download.run()
    fault = _fault(download, parameters)
    if fault is not None:
        download.discard()
        raise StepFailed(fault)  # not final: the upload to the host may not have ended yet
    context.keep(download.path, parameters.stored_as, sha256=download.sha256)
    context.progress(1, f"{download.size} bytes")
    return StepResult(
        message=f"Downloaded {download.size} bytes",
        metadata={
            "size": download.size,
            "sha256": download.sha256,
            "contentType": download.content_type,
            "seconds": round(monotonic() - begun, 3),
        },
    )


def store(context: StepContext[HttpFetchVerify]) -> StepResult:
    """Publish the fetched file, as a hard link, which copies nothing, if the file system supports it."""
    name = context.parameters.stored_as
    source, path = context.job_file(name), context.workspace / name
    try:
        os.link(source, path)
    except OSError:
        shutil.copyfile(source, path)
    fetched = context.results["fetch"]
    context.publish(path, name, sha256=str(fetched["sha256"]))
    return StepResult(message=f"Stored {context.job.content_id}/{name}", metadata=dict(fetched))


def _fault(download: ResumableDownload, parameters: HttpFetchVerify) -> str | None:
    if parameters.size is not None and download.size != parameters.size:
        return f"Expected {parameters.size} bytes, received {download.size}."
    if parameters.sha256 is not None and download.sha256 != parameters.sha256:
        return f"Expected SHA-256 {parameters.sha256}, received {download.sha256}."
    return None


HTTP_FETCH_VERIFY: Final = Workflow(
    "http_fetch_verify",
    HttpFetchVerify,
    (Step("fetch", fetch, needs_network=True), Step("store", store, after=("fetch",))),
    description="Downloads a file into the folder of the content and checks its size and SHA-256.",
)
