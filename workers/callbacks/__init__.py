"""Callbacks: notices of the progress of jobs, and of the ends of infrastructure. docs/reference/api/webhooks.md#callbacks."""
