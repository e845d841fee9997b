"""The endpoints that answer paths."""

from __future__ import annotations

import httpx
import pytest
from fastapi import APIRouter

from api.http.endpoint import MissingServices
from api.http.path_trie import PathTrie
from api.http.response import Response
from api.http.routing import OPEN, Route, Service, requires, rules
from api.http.surface import Surface
from api.kernel.app import build
from api.kernel.auth import READ
from api.kernel.request import Request
from api.kernel.surfaces import MediaRoute
from domain.kernel.encryption import KeyedHash
from tests.api.http.toy import ID, MemoryIdempotency, Shelf, Toy, authenticate


@pytest.mark.parametrize("slash", ["", "/"])
async def test_every_path_answers_with_and_without_its_trailing_slash(http: httpx.AsyncClient, slash: str) -> None:
    for path in ("/api/thing", f"/api/thing/{ID}", "/api/thing/reference", f"/api/thing/{ID}/state"):
        assert (await http.get(path + slash)).status_code == 200


async def test_fixed_segments_win_and_parameters_are_tried_after_all(http: httpx.AsyncClient) -> None:
    assert (await http.get("/api/thing/reference")).json() == {"route": "reference"}
    assert (await http.get("/api/thing/reference/state")).json() == {"route": "state", "id": "reference"}
    assert (await http.get("/api/thing/reference/7/count")).json() == {"number": 7}


async def test_a_segment_is_decoded_once_and_may_hold_a_slash(http: httpx.AsyncClient) -> None:
    assert (await http.get("/api/thing/a%2Fb%252F%C3%A9/state")).json()["id"] == "a/b%2Fé"
    assert (await http.get("/api/thin%67/reference")).status_code == 200


@pytest.mark.parametrize("segment", ["%FF", "a%00b", "%ED%A0%80"])
async def test_a_segment_that_is_no_text_is_400(http: httpx.AsyncClient, segment: str) -> None:
    answer = await http.get(f"/api/thing/{segment}/state")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "id"


@pytest.mark.parametrize("path", ["/", "/api", "/api/nothing", "/api//thing", "/api/thing//", "/apix", f"/api/thing/{ID}/x"])
async def test_an_unknown_path_is_404_without_a_key(toy: Toy, path: str) -> None:
    async with toy.client(None) as http:
        answer = await http.get(path)
    assert answer.status_code == 404
    if path.startswith("/api/"):
        assert answer.headers["content-type"] == "application/problem+json"


async def test_an_unknown_path_answers_in_the_words_of_its_surface() -> None:
    engine = Surface("engine", prefix="/engine", render=lambda failure, request: Response({"error": "no"}, failure.status))

    class EngineRoute(Route):
        surface = engine

    routes = APIRouter(prefix="/engine", route_class=EngineRoute)

    @routes.get("/job", dependencies=[OPEN])
    async def get_job(request: Request) -> Response:
        return Response()

    app = build([routes], {}, authenticate=authenticate, idempotency=MemoryIdempotency(), fingerprint=KeyedHash(bytes(32)))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as http:
        assert (await http.get("/engine/x")).json() == {"error": "no"}
        assert (await http.get("/enginex")).json()["status"] == 404


async def test_a_refused_method_answers_in_the_words_of_its_surface(http: httpx.AsyncClient) -> None:
    assert (await http.get("/admin/other")).headers["content-type"] == "application/problem+json"
    assert (await http.get("/admin/speke")).headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("text", ["nonsense", "1", "0f0e0d0c-0b0a-4908-8706-05040302010", "0f0e0d0c_0b0a_4908_8706_050403020100"])
async def test_a_malformed_guid_is_400_and_names_the_parameter(http: httpx.AsyncClient, text: str) -> None:
    answer = await http.get(f"/api/thing/{text}")
    assert answer.status_code == 400
    assert answer.json()["errors"] == [{"field": "thingId", "message": "must be a GUID"}]


async def test_a_guid_may_be_in_any_case(http: httpx.AsyncClient) -> None:
    assert (await http.get(f"/api/thing/{ID.upper()}")).json()["id"] == ID


@pytest.mark.parametrize("text", ["x", "1_0", "%D9%A1", "1.0", "9" * 19, "9" * 5000, "%201", "+1"])
async def test_a_malformed_number_is_400(http: httpx.AsyncClient, text: str) -> None:
    assert (await http.get(f"/api/thing/reference/{text}/count")).status_code == 400


async def test_a_wrong_method_is_405_with_allow_without_a_key(toy: Toy) -> None:
    async with toy.client(None) as http:
        answer = await http.post(f"/api/thing/{ID}")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "DELETE, GET, HEAD, PATCH, PUT"


async def test_the_trie_prefers_the_longest_fixed_prefix() -> None:
    paths: PathTrie[str] = PathTrie()
    for template in ("/", "/a/{x}", "/a/b", "/{y}/b/c", "/a/{x}/{z}/d"):
        paths.add(template, template)
    assert paths.find(b"/") == ("/", [])
    assert paths.find(b"/a/b") == ("/a/b", [])
    assert paths.find(b"/a/b/c/") == ("/{y}/b/c", ["a"])
    assert paths.find(b"/a/b/c/d") == ("/a/{x}/{z}/d", ["b", "c"])
    assert paths.find(b"/a/") == (None, [])


async def test_a_reserved_first_segment_is_never_a_parameter() -> None:
    paths: PathTrie[str] = PathTrie()
    for template in ("/api/thing", "/{name}/speke"):
        paths.add(template, template)
    for segment in ("api", "engine"):
        paths.reserve(segment)
    assert paths.find(b"/admin/speke") == ("/{name}/speke", ["admin"])
    assert paths.find(b"/api/thing") == ("/api/thing", [])
    for path in (b"/api/speke", b"/%61pi/speke", b"/engine/speke", b"/engine"):
        assert paths.find(path) == (None, [])


async def test_fixed_segments_match_in_any_case_where_they_were_added_so() -> None:
    paths: PathTrie[str] = PathTrie()
    for template in ("/api/a/{id}/playlistItems", "/api/a/reference", "/{name}/speke", "/api/a/{id}", "/api/{kind}/{id}/x"):
        paths.add(template, template, any_case=True)
    for template in ("/media/{path:path}", "/livez"):
        paths.add(template, template)
    for segment in ("api", "media"):
        paths.reserve(segment)
    assert paths.find(b"/API/A/Id/playlistitems/") == ("/api/a/{id}/playlistItems", ["Id"])
    assert paths.find(b"/api/a/REFERENCE") == ("/api/a/reference", [])
    assert paths.find(b"/Api/a/References") == ("/api/a/{id}", ["References"])
    assert paths.find(b"/Desk/SPEKE") == ("/{name}/speke", ["Desk"])
    assert paths.find(b"/api/A/Y/x") == ("/api/{kind}/{id}/x", ["A", "Y"])
    assert paths.find(b"/api/speke") == (None, [])
    for path in (b"/Media/a.mp4", b"/LIVEZ", b"/api/a/id/playlistItem", b"/"):
        assert paths.find(path) == (None, [])


async def test_mistakes_in_declarations_are_found_at_the_start() -> None:
    async def endpoint(request: Request, shelf: Service[Shelf]) -> Response:
        return Response()

    def start(routes: APIRouter) -> None:
        build([routes], {}, authenticate=authenticate, idempotency=MemoryIdempotency(), fingerprint=KeyedHash(bytes(32)))

    routes = APIRouter(prefix="/api", tags=["media"], route_class=MediaRoute)
    routes.get("/x", dependencies=[READ])(endpoint)
    with pytest.raises(MissingServices, match="shelf"):
        start(routes)
    with pytest.raises(TypeError, match="permission"):
        requires()
    with pytest.raises(TypeError, match="permission"):
        routes.get("/y")(endpoint)
    with pytest.raises(ValueError, match="whole segment"):
        routes.get("/y/{a}.json", dependencies=[OPEN])(endpoint)
    with pytest.raises(TypeError, match="only a GET"):
        routes.put("/y", dependencies=[OPEN])(rules(absent=204)(endpoint))

    async def bare(request: Request) -> Response:
        return Response()

    twice = APIRouter(prefix="/api", tags=["media"], route_class=MediaRoute)
    twice.get("/x", dependencies=[OPEN])(bare)
    twice.get("/x/", dependencies=[OPEN])(bare)
    with pytest.raises(ValueError, match="twice"):
        start(twice)
    unnamed = APIRouter(prefix="/api", tags=["media"], route_class=MediaRoute)
    with pytest.raises(TypeError, match="no parameter for id"):
        unnamed.get("/x/{id}", dependencies=[OPEN])(bare)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (b"/media/7/a", ["7", "a"]),
        (b"/media/7/a/b%20c/d", ["7", "a/b c/d"]),
        (b"/media/7/a//b", ["7", "a//b"]),
        (b"/media/7/a%2Fb", None),
        (b"/media/7", ["7"]),
        (b"/media", None),
    ],
)
def test_a_last_parameter_may_take_all_segments_that_are_left(path: bytes, values: list[str] | None) -> None:
    trie: PathTrie[str] = PathTrie()
    trie.add("/media/{id}/{file:path}", "file")
    trie.add("/media/{id}", "folder")
    leaf, result = trie.find(path)
    assert (result if leaf else None) == values
