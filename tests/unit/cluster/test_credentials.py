"""How requests are signed in, and how credentials stay fresh."""

import base64
from pathlib import Path

import pytest

from pumice.cluster.client import Client
from pumice.cluster.connection import Connection, StaticCredentials, TokenFile, basic, bearer
from pumice.cluster.errors import ApiError
from tests.kit.clocks import FastClock
from tests.unit.cluster.tiny import TinyApi, status


async def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path, fast: FastClock) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    credentials = TokenFile(file, clock=fast)
    file.write_text("second\n")
    assert (await credentials.headers())["Authorization"] == "Bearer first"
    fast.now += 60
    assert (await credentials.headers())["Authorization"] == "Bearer second"


async def test_a_token_file_that_vanishes_leaves_the_last_token(
    tmp_path: Path, fast: FastClock
) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    credentials = TokenFile(file, clock=fast)
    file.unlink()
    fast.now += 60
    assert (await credentials.headers())["Authorization"] == "Bearer first"
    assert not await credentials.refused()


async def test_names_and_passwords_are_encoded() -> None:
    header = basic("me", "pä:ss")["Authorization"]
    assert base64.b64decode(header.removeprefix("Basic ")).decode() == "me:pä:ss"


async def test_after_401_a_request_is_repeated_with_a_fresh_token(
    api: TinyApi, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    client = Client(Connection(api.url, TokenFile(file)))
    file.write_text("new")
    api.answer_next(401, status(401, "Unauthorized"))
    assert await client.version() == {"gitVersion": "v1.0.0-tiny"}
    await client.close()
    assert [seen.headers["Authorization"] for seen in api.requests] == ["Bearer old", "Bearer new"]


async def test_a_second_401_is_the_answer(api: TinyApi) -> None:
    client = Client(Connection(api.url, StaticCredentials(bearer("bad"))))
    api.answer_next(401, status(401, "Unauthorized", "who are you"))
    with pytest.raises(ApiError) as caught:
        await client.version()
    await client.close()
    assert str(caught.value) == "GET /version: 401 Unauthorized: who are you"
    assert len(api.requests) == 1
