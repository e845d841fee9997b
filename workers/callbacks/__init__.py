"""Tells the receivers that a job names how it and its tasks go. Issue 7, "Callbacks"."""
