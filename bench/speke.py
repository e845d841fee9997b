"""The key provider compared with a trivial POST under the same server settings: known keys, new keys, and a document of many
keys."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import UUID

from bench.ground import Ground, Served, driven, in_turns, trivial_posts
from bench.load import MARK, Seen
from bench.report import Result, Table, Target, middle
from bench.writes import ratio

_NAMESPACES = (
    'xmlns:cpix="urn:dashif:org:cpix" xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc" xmlns:speke="urn:aws:amazon:com:speke"'
)
_WIDEVINE = "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"
_PLAYREADY = "9a04f079-9840-4286-ab92-e65be0885f95"
_FAIRPLAY = "94ce86fb-07ff-4f43-adb8-93d2fa968ca2"
_KNOWN = 500
_KEYS = 8


def speke(ground: Ground) -> Result:
    """(l) SPEKE requests per second by 32 clients, each compared with a trivial POST."""
    url = ground.database("bench_speke")
    with ground.server("trivial") as trivial, ground.server("product", url) as product:
        known_key_requests = known_keys(product)
        document = [_v2(product, f"document-{number}") for number in range(_KNOWN)]
        driven(product, [*known_key_requests, *document], clients=8, effort=ground.effort)
        cells: dict[str, Callable[[], Seen]] = {
            name: partial(driven, server, requests, clients=32, effort=ground.effort)
            for name, server, requests in (
                ("trivial POST", trivial, trivial_posts(trivial)),
                ("v1, known key, two systems", product, known_key_requests),
                ("v1, new key, two systems", product, [_v1(product, f"new-{MARK}")]),
                ("v2, eight known keys, three systems", product, document),
            )
        }
        ground.settle()
        seen = in_turns(cells, rounds=ground.effort.rounds)
    table = Table("(l) SPEKE by 32 clients; ratio: of the trivial POST", ("", "req/s", "p50 ms", "p99 ms", "ratio"))
    for name, values in seen.items():
        figures = [middle([getattr(value, figure) for value in values]) for figure in ("rate", "p50", "p99")]
        table.add(name, *figures, ratio(values, seen["trivial POST"]))
    targets = [
        Target(f"{name}, of trivial", ratio(seen[name], seen["trivial POST"]), wanted)
        for name, wanted in (("v1, known key, two systems", 0.5), ("v1, new key, two systems", 0.25))
    ]
    return Result("speke", [table], targets, raw=dict(seen))


def known_keys(product: Served) -> list[str]:
    """Return requests for keys that exist, because each request was sent once."""
    return [_v1(product, f"content-{number}") for number in range(_KNOWN)]


def _v1(product: Served, content: str) -> str:
    systems = "".join(f'<cpix:DRMSystem kid="" systemId="{system}"></cpix:DRMSystem>' for system in (_PLAYREADY, _WIDEVINE))
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?><cpix:CPIX id="{content}" {_NAMESPACES}><cpix:ContentKeyList>'
        '<cpix:ContentKey kid="" explicitIV=""></cpix:ContentKey></cpix:ContentKeyList>'
        f"<cpix:DRMSystemList>{systems}</cpix:DRMSystemList></cpix:CPIX>"
    )
    return product.request("POST", "/admin/speke", body=body, kind="application/xml")


def _v2(product: Served, content: str) -> str:
    """Return the request of a packager for SD to UHD and stereo to surround, cbcs, all three systems."""
    kids = [str(UUID(int=hash((content, number)) & (1 << 120) - 1 | 1 << 120)) for number in range(_KEYS)]
    tracks = ("SD", "HD1", "HD2", "UHD1", "UHD2", "STEREO_AUDIO", "MULTICHANNEL_AUDIO_3_6", "MULTICHANNEL_AUDIO_7")
    keys = "".join(f'<cpix:ContentKey kid="{kid}" commonEncryptionScheme="cbcs"/>' for kid in kids)
    systems = "".join(_asked(kid, system) for kid in kids for system in (_WIDEVINE, _PLAYREADY, _FAIRPLAY))
    rules = "".join(
        f'<cpix:ContentKeyUsageRule kid="{kid}" intendedTrackType="{track}">'
        f"<cpix:{'AudioFilter' if 'AUDIO' in track else 'VideoFilter'}/></cpix:ContentKeyUsageRule>"
        for kid, track in zip(kids, tracks, strict=True)
    )
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?><cpix:CPIX contentId="{content}" version="2.3" {_NAMESPACES}>'
        f"<cpix:ContentKeyList>{keys}</cpix:ContentKeyList><cpix:DRMSystemList>{systems}</cpix:DRMSystemList>"
        f"<cpix:ContentKeyUsageRuleList>{rules}</cpix:ContentKeyUsageRuleList></cpix:CPIX>"
    )
    return product.request("POST", "/admin/speke", body=body, kind="application/xml", more={"x-speke-version": "2.0"})


def _asked(kid: str, system: str) -> str:
    lines = '<cpix:HLSSignalingData playlist="media"/><cpix:HLSSignalingData playlist="master"/>'
    wanted = lines if system == _FAIRPLAY else f"<cpix:PSSH/><cpix:ContentProtectionData/>{lines}"
    return f'<cpix:DRMSystem kid="{kid}" systemId="{system}">{wanted}</cpix:DRMSystem>'
