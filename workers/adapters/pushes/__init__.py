"""Pushes of live streams from HLS to RTMP, without encoding them again."""
