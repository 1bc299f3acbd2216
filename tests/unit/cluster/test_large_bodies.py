"""Large lists are read in smaller pages, and few large bodies are sent at the same time."""

import asyncio
import json

import pytest
from aiohttp import web

from pumice.api.kinds import CONFIG_MAP
from pumice.cluster import collection
from pumice.cluster.client import Client
from pumice.cluster.transport import LARGE_BODIES, LARGE_BODY
from tests.kit.http import serving


def loopback(port: int) -> str:
    return f"http://127.0.0.1:{port}"


async def test_a_page_that_is_too_large_is_requested_again_with_fewer_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collection, "PAGE_BYTES", 1000)
    sizes = [10] * 40 + [400] * 8 + [2000] + [10] * 60
    limits: list[int] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        begin, limit = int(request.query.get("continue", 0)), int(request.query["limit"])
        limits.append(limit)
        end = min(len(sizes), begin + limit)
        more = str(end) if end < len(sizes) else ""
        items = [{"n": number, "x": "x" * sizes[number]} for number in range(begin, end)]
        return web.json_response({"metadata": {"continue": more}, "items": items})

    async with serving(answer) as port, Client.connect(server=loopback(port)) as client:
        pages = [json.loads(body) async for body in client.collection(CONFIG_MAP).bodies(20)]
    assert [each["n"] for page in pages for each in page["items"]] == [*range(len(sizes))]
    large = [page["items"] for page in pages if len(json.dumps(page)) > 1100]
    assert [[each["n"] for each in items] for items in large] == [[48]]
    assert max(limits) == limits[0] == 20
    assert limits[-1] > 1
    assert len(limits) < 40


async def test_few_large_bodies_are_sent_at_the_same_time() -> None:
    open_now, most, go_on = {"small": 0, "large": 0}, {"small": 0, "large": 0}, asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.Response:
        kind = "large" if len(await request.read()) >= LARGE_BODY else "small"
        open_now[kind] += 1
        most[kind] = max(most[kind], open_now[kind])
        if sum(open_now.values()) == LARGE_BODIES + 20:
            go_on.set()
        await go_on.wait()
        open_now[kind] -= 1
        return web.json_response({})

    async with serving(answer) as port, Client.connect(server=loopback(port)) as client:
        bodies = [{"data": {"x": "x" * LARGE_BODY}}] * 30 + [{"data": {"x": "x"}}] * 20
        made = (client.create(CONFIG_MAP, body, "default") for body in bodies)
        await asyncio.gather(*made)
    assert most == {"small": 20, "large": LARGE_BODIES}
