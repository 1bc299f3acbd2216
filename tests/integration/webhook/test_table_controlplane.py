"""Rows of every case table through the real kube-apiserver, which asks the webhook.

A row is asked as a dry run, of a cluster that holds what the row's does. What must come out is what the
pure rules say of the object after what the API server itself does to it: the same causes in the same order,
or the object as the rules would store it. Every row is asked that an API server can be asked; as samples of
an endpoint and an operation count those that come out as their table says.
"""

from collections import Counter
from collections.abc import Callable

import pytest
import yaml

from pumice.cluster.client import Client
from pumice.webhook.registrations import REGISTRATIONS
from tests.integration.webhook.judged_cluster import judging
from tests.integration.webhook.verdicts import outcome
from tests.unit.webhook.reviewing import Row, rows

Setting = tuple[tuple[str, ...], bytes]
Sample = tuple[str, str, str]
"""An endpoint, an operation, and whether it is admitted or refused."""

SILENCED = "rule.NOT-HERE-YET=off"
WORTH_A_WEBHOOK = 7
"""Rows with the same settings for which one is started."""


def rows_by_settings() -> dict[Setting, list[Row]]:
    """Rows by what the webhook is started with, where they are many; without what only silences a warning, which is not compared."""
    found: dict[Setting, list[Row]] = {}
    for row in rows():
        assignments = tuple(each for each in row.assignments if each != SILENCED)
        found.setdefault((assignments, row.conf), []).append(row)
    return {setting: some for setting, some in found.items() if len(some) >= WORTH_A_WEBHOOK}


SETTINGS = rows_by_settings()
MAIN = max(SETTINGS, key=lambda setting: len(SETTINGS[setting]))


def can_be_asked(row: Row) -> bool:
    """Whether it can be asked like this: with a name that is known before, and nothing that only an API
    server writes.
    """
    asked = row.request
    metadata = (asked["object"] or asked["oldObject"] or {}).get("metadata")
    named = isinstance(metadata, dict) and "name" in metadata
    return (
        "errored" not in row.expected
        and "subResource" not in asked
        and asked["operation"] in ("CREATE", "UPDATE", "DELETE")
        and (named or asked["operation"] == "DELETE")
        and not {"deletionTimestamp", "managedFields"} & set(metadata or ())
    )


def _name(setting: Setting) -> str:
    assignments, conf = setting
    groups = ["with groups"] if yaml.safe_load(conf) is not None else []
    return " ".join([*assignments, *groups]) or "default"


@pytest.mark.parametrize("setting", SETTINGS, ids=_name)
async def test_the_api_server_says_what_the_rules_say(
    plane_api: Client, ensure_namespace: Callable[[str], None], namespace: str, setting: Setting
) -> None:
    samples: Counter[Sample] = Counter()
    async with judging(plane_api, ensure_namespace, namespace, *setting) as cluster:
        for row in SETTINGS[setting]:
            result = await outcome(row, cluster) if can_be_asked(row) else None
            if result is not None:
                wanted, verdict = result
                assert wanted.is_met(row, verdict), (row.name, wanted, verdict)
                samples[row.path, row.request["operation"], _word(row)] += wanted.is_the_tables(
                    row, verdict
                )
    assert {each: count for each, count in least(setting).items() if samples[each] < count} == {}


def least(setting: Setting) -> dict[Sample, int]:
    """How many rows of each endpoint and operation must have come out as their table says."""
    if setting != MAIN:
        paths = {row.path for row in SETTINGS[setting]}
        return {("/pods/mutate", "CREATE", "admitted"): 5} if paths == {"/pods/mutate"} else {}
    wanted = {}
    for each in REGISTRATIONS:
        if each.path == "/pods/mutate":  # which needs a file of resource groups
            continue
        for operation in each.operations:
            count = 4 if operation == "CREATE" else 1
            wanted[each.path, operation, "admitted"] = count
            if not each.mutating:
                wanted[each.path, operation, "refused"] = count
    return wanted


def _word(row: Row) -> str:
    return "refused" if "codes" in row.expected else "admitted"
