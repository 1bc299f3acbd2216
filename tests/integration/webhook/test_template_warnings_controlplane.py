"""What the real kube-apiserver warns of when a pod is created, Pumice warns of when the Job is.

Nothing is created: a pod of each template of the tables is sent as a dry run.
"""

import http.client
import json
import re
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.controlplane.cluster import ControlPlane
from tests.unit.webhook.template_rows import TemplateRow, pod_of, relative, template_rows

Raw = dict[str, Any]

CODES = {"TPL-DEPRECATED", "TPL-DOUBTFUL"}
AT_ONCE = 8
ROWS = [row for row in template_rows() if not row.codes]

_TEXT = re.compile(r'299 - "(.*)"$', re.DOTALL)
_KEY = re.compile(r"\[([^\]\d][^\]]*)\]")
_VOLUME = re.compile(r'volume "([^"]*)"')


@pytest.fixture
def said(controlplane: ControlPlane, namespace: str) -> dict[str, list[str] | None]:
    """By name of a row the paths of the API server's warnings, as Pumice writes them; None where it refuses."""
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner"}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert controlplane.request("POST", path, body)[0] == 201
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = threads.map(lambda row: _warnings(controlplane, namespace, row.template), ROWS)
        return {row.name: found for row, found in zip(ROWS, answers, strict=True)}


def test_both_warn_of_the_same_places(said: dict[str, list[str] | None]) -> None:
    wrong, agreed = [], 0
    for row in ROWS:
        served = said[row.name]
        if served is None or row.settings:
            continue
        told = [path for path in _told(row) if not _within(path, row.alone)]
        served = [path for path in served if not _within(path, row.alone)]
        missing = [path for path in served if not any(_same(path, each) for each in told)]
        excess = [path for path in told if not any(_same(path, each) for each in served)]
        if missing or excess:
            wrong.append(f"{row.name}: not told {missing}, not said {excess}")
        agreed += len(told)
    assert wrong == []
    assert agreed >= 60


def _told(row: TemplateRow) -> Iterator[str]:
    for warning in row.judged().warnings:
        if warning.code in CODES:
            yield relative(warning.path)


def _warnings(controlplane: ControlPlane, namespace: str, template: Raw) -> list[str] | None:
    """Where the API server warns; None when it refuses the pod."""
    place = urlsplit(controlplane.url)
    context = ssl.create_default_context(cafile=str(controlplane.ca))
    connection = http.client.HTTPSConnection(
        str(place.hostname), place.port, context=context, timeout=60
    )
    headers = {
        "Authorization": f"Bearer {controlplane.admin_token}",
        "Content-Type": "application/json",
    }
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldValidation=Ignore"
    try:
        connection.request("POST", path, json.dumps(pod_of(template)), headers)
        answer = connection.getresponse()
        answer.read()
    finally:
        connection.close()
    if answer.status != 201:
        return None
    return [_path(each, template) for each in answer.headers.get_all("Warning") or []]


def _path(header: str, template: Raw) -> str:
    """The place that a warning is about."""
    found = _TEXT.fullmatch(header)
    assert found, header
    text = re.sub(r"\\(.)", r"\1", found[1])
    if volume := _VOLUME.match(text):
        names = [each.get("name") for each in template["spec"]["volumes"]]
        return f"spec.volumes[{names.index(volume[1])}]"
    path = _KEY.sub(r".\1", text.partition(": ")[0])
    return path.replace(".storageOS", ".storageos")


def _same(one: str, other: str) -> bool:
    """Whether two places are the same, or one is a part of the other."""
    return one == other or _within(one, [other]) or _within(other, [one])


def _within(path: str, places: list[str]) -> bool:
    return any(path == place or path.startswith((f"{place}.", f"{place}[")) for place in places)
