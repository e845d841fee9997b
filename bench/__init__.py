"""Measurements of medialedger next to well-known things: a trivial endpoint, pgbench, a plain CRUD application.

Every figure that matters is a ratio of two things measured in the same run, in turns. Absolute figures are valid for one machine
only.
"""
