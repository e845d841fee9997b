"""Measurements of medialedger beside things a reader knows: a trivial endpoint, pgbench, a plain CRUD application.

Every figure that matters is a ratio of two things measured in the same run, in turns. Absolute figures belong to one machine.
"""
