"""Jobs as requests."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Union

from berth.model import Job
from berth.v1 import job_pb2

AnyJob = Union[Job, job_pb2.Job]
MAX_JOBS = 1000
MAX_BYTES = 3 << 20  # of a request; servers take 4 MiB


def job_pb(job: AnyJob) -> job_pb2.Job:
    """The raw message of a job, without what only the server sets."""
    if isinstance(job, Job):
        made = job_pb2.Job()
        job._write(made)
    else:
        made = job_pb2.Job(name=job.name, spec=job.spec)
    made.ClearField("uid")
    made.ClearField("status")
    made.ClearField("etag")
    return made


def batches(jobs: Iterable[AnyJob]) -> Iterator[job_pb2.SubmitJobsRequest]:
    """Requests with the jobs in order, as large as a server takes them."""
    request, size = job_pb2.SubmitJobsRequest(), 0
    for job in jobs:
        made = job_pb(job)
        bytes_of = made.ByteSize() + 8
        if request.jobs and (len(request.jobs) == MAX_JOBS or size + bytes_of > MAX_BYTES):
            yield request
            request, size = job_pb2.SubmitJobsRequest(), 0
        request.jobs.append(made)
        size += bytes_of
    if request.jobs:
        yield request
