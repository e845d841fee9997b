"""Captions: data in pictures, and text tracks."""
