"""Credentials and addresses in the forms in which they turn up in parameters, logs and errors."""

from __future__ import annotations

from typing import Final

_FILL: Final = "Zq3Wm8Xv5Rb1Tn7Yk2Ls9Jd4Hf6Gc0Pa8Oe2Iu5Bz1Qw"
TOKENS: Final = (
    f"mlk_0f8a6c2d4e1b3957_{_FILL}",
    f"whsec_{_FILL}",
    f"mlo_e.17.1764411922.1764415522.{_FILL[:43]}",
    f"ghp_{_FILL[:36]}",
    f"github_pat_{_FILL}",
    f"glpat-{_FILL[:20]}",
    f"sk_live_{_FILL[:24]}",
    f"rk_live_{_FILL[:24]}",
    f"sk-proj-{_FILL}",
    "AKIAIOSFODNN7EXAMPLQ",
    "xoxb-2048-4096-Zq3Wm8Xv5Rb1",
    f"AIza{_FILL[:35]}",
    f"ya29.{_FILL}",
    f"SG.{_FILL[:22]}.{_FILL[:43]}",
    f"npm_{_FILL[:36]}",
    f"pypi-{_FILL}",
    f"hf_{_FILL[:34]}",
    f"dckr_pat_{_FILL[:27]}",
    f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ6In0.{_FILL[:43]}",
)
"""Credentials that are known by how they begin."""
GIVEN: Final = (
    ("Authorization: Bearer {}", _FILL),
    ("mysql -u root -p {} films", "hunter2-and-more"),
    ("ftp --login {}", "newsroom-upload"),
    ("pw={}", "hunter2-and-more"),
    ("psk: {}", "hunter2-and-more"),
    ("connectionString={}", "Server=db;Uid=a;hunter2"),
    ("wachtwoord: {}", "hunter2-and-more"),
    ("contraseña={}", "hunter2-and-more"),
    ("mot_de_passe={}", "hunter2-and-more"),
    ("open https://news:{}@cdn.example.com/a.mp4", "hunter2-and-more"),
)
"""Credentials that are known by what stands before them."""
ADDRESSES: Final = (
    "http://127.0.0.1:8090/origin/live/secret-rehearsal/archive/master.m3u8",
    "https://media.inside-test.example/media/6f1c0d7e/a.mp4",
    "media.inside-test.example:8443/x",
    "/origin/live/secret-rehearsal/master.m3u8",
    "http://10.1.2.3/a.ts",
    "http://172.16.9.1:1935",
    "192.168.7.7:8080",
    "169.254.169.254",
    "http://100.64.3.2/a",
    "http://[::1]:8080/a",
    "[fd12:3456::9]:443",
    "fe80::1:2%eth0",
    "http://[::ffff:10.0.0.9]/a",
    "http://2130706433/a",
    "http://0x7f.0.0.1/a",
    "http://localhost:9000/bucket",
    "localhost:5432",
    "http://minio:9000/bucket/a",
    "encoder-7:1935",
    "srt://encoder.studio.internal:9000",
    "nas.local",
    "playout.corp",
    "rtmp://ingest.svc.cluster.local/live",
    "nas:/export/films/a.mxf",
    r"\\nas\films\a.mxf",
    "http://127.0.0.1.nip.io/a",
    "http%3A%2F%2F10.0.0.8%2Fa",
    r"http:\/\/10.0.0.8\/a",
    "https://cdn.example.com/a.mp4?Expires=1764411922",
    "cdn.example.com/a.mp4?Policy=abcdefgh",
    "/signed/a.mp4?se=2026",
    "https://cdn.example.com/a.mp4#t=secret",
)
"""Addresses of the inside, of this server, and with parameters."""
HARMLESS_ADDRESSES: Final = ("https://cdn.example.com/films/a.mp4", "rtmp://live.example.com:1935/app", "8.8.8.8", "12:30:45")
