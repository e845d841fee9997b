"""Callbacks: notices of the progress of jobs, and of the ends of runs of infrastructure. See
docs/reference/api/webhooks.md#callbacks."""
