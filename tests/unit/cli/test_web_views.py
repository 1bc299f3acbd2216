"""What ends the views of the page when it cannot be found out what the user may read."""

from pathlib import Path

import pytest
import yaml

from pumice.cli.files.configuration import read_config
from pumice.cli.live.web_views import WebViews
from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError
from tests.kit.clocks import FastClock
from tests.unit.cluster.tiny import status, tiny_api


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (403, 'invalid namespace "a/b": expected one without "/" that is not empty'),
        (503, "GET /api/v1/nodes: 503 Refused"),
    ],
)
async def test_the_error_of_the_first_requests_is_said_as_it_is(
    tmp_path: Path, code: int, expected: str
) -> None:
    """Of a context whose user may read only its own namespace, which nothing can have; and of a server that is busy."""
    file = tmp_path / "config"
    async with tiny_api() as api:
        context = {"name": "x", "context": {"cluster": "c", "namespace": "a/b"}}
        clusters = [{"name": "c", "cluster": {"server": api.url}}]
        config = {"current-context": "x", "contexts": [context], "clusters": clusters}
        file.write_text(yaml.safe_dump(config))
        for _ in range(20):
            api.answer_next(code, status(code, "Refused"))
        async with Client.connect(str(file), clock=FastClock()) as client:
            with pytest.raises(ApiError, match=expected):
                await WebViews(client, read_config(None), None).run()
