"""Keys open nothing where no name resolves: plugin ssh without plugin svc."""

from typing import Any

import pytest

from pumice.plugins import builtin, problems
from pumice.plugins.addresses import OwnerJob, OwnerTask
from tests.unit.plugins.support import job, task


def doubted(job: Any) -> bool:
    return "JOB-PLUGIN-SUBDOMAIN" in [each.code for each in problems(job, builtin()).warnings]


@pytest.mark.parametrize(
    ("tasks", "plugins", "expected"),
    [
        ([task("w", 2)], ("ssh",), True),
        ([task("m"), task("w")], ("ssh", "env"), True),
        ([task("w", 2)], ("ssh", "svc"), False),
        ([task("w", 1)], ("ssh",), False),
        ([task("w", 2, subdomain="mine")], ("ssh",), False),
        ([task("w", 2, subdomain="mine"), task("other")], ("ssh",), True),
    ],
    ids=["alone", "of two tasks", "with svc", "one pod", "own subdomain", "in part"],
)
def test_names_must_resolve(tasks: Any, plugins: Any, expected: bool) -> None:
    assert doubted(job("j", *tasks, plugins={key: [] for key in plugins})) is expected


@pytest.mark.parametrize("has_service", [True, False])
def test_another_controller_may_see_to_it(has_service: bool) -> None:
    plain = job("j", plugins={"ssh": []})
    pods = OwnerTask(name="w", replicas=2)
    spec = type(plain.spec)(plugins=plain.spec.plugins, tasks=[pods])
    found = OwnerJob(metadata=plain.metadata, spec=spec, subdomain="j", has_service=has_service)
    assert doubted(found) is not has_service
