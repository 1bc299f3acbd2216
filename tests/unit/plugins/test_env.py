"""Plugin `env`."""

from typing import Any

import pytest

from pumice.plugins import PluginError
from tests.unit.plugins.support import containers, env, job_of, pod_of, rows, wired


@pytest.mark.parametrize("row", rows("env"))
def test_every_container_knows_its_index(row: dict[str, Any]) -> None:
    job = job_of(row["job"], {"env": row.get("arguments", [])})
    pod = pod_of(*row["pod"])

    if "refused" in row:
        with pytest.raises(PluginError, match=row["refused"]):
            wired(job, pod)
        return

    expected = [("VK_TASK_INDEX", row["index"]), ("VC_TASK_INDEX", row["index"])]
    assert [env(each) for each in containers(wired(job, pod)).values()] == [expected] * 3
