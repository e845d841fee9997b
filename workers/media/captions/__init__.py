"""Captions: the data that pictures carry, and text tracks."""
