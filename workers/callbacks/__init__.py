"""Callbacks of jobs: notices of the progress of a job and its tasks. docs/reference/api/job-engine.md#callbacks."""
