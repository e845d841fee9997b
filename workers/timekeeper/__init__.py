"""Queues jobs when their time comes and their gate is open. Issue 7, "Controller"."""
