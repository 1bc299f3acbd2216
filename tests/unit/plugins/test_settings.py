"""Settings of job plugins, as the controller is given them."""

import pytest

from pumice.api.setting_errors import SettingError
from pumice.plugins import PluginSettings, Wiring, builtin
from tests.unit.plugins.support import containers, job, pod_of, task


def test_every_setting_has_a_description_and_a_default() -> None:
    assert all(text for text, _ in PluginSettings.described().values())
    assert PluginSettings.described()["wait-image"][1] == PluginSettings().wait_image


def test_settings_are_read_from_assignments() -> None:
    found = PluginSettings.from_assignments(
        ["wait-image=mine:1", 'wait-resources={"limits": {"cpu": "1"}}', "strict-upstream=true"]
    )

    assert found.wait_image == "mine:1"
    assert found.wait_resources == {"limits": {"cpu": "1"}}
    assert found.strict_upstream


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("wait-image", "is no setting, expected NAME=VALUE"),
        ("wait-imag=x", '(did you mean "wait-image"?)'),
        ("nothing-like-it=x", "known are wait-image"),
        ("wait-image=", "must have at least 1 character, found none"),
        ("wait-resources=1", "must be an object, found the integer 1"),
        ("wait-security-context={", "must be a JSON object, found"),
        ("strict-upstream=perhaps", "must be true or false"),
    ],
)
def test_a_bad_assignment_is_refused_in_one_line(assignment: str, message: str) -> None:
    with pytest.raises(SettingError) as refusal:
        PluginSettings.from_assignments([assignment])

    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_they_reach_the_wait_step_and_the_whole_wiring() -> None:
    train = job(
        "j",
        task("master"),
        task("worker", 2),
        plugins={"pytorch": ["--wait-master-enabled"]},
    )
    pod = pod_of("j-worker-0", "worker")

    mine = PluginSettings(wait_image="mine:1", wait_security_context={"runAsUser": 7})
    step = containers(Wiring(train, builtin(), settings=mine).pod(train.tasks[1], 0, pod))
    assert step["wait-for-master"]["image"] == "mine:1"
    assert step["wait-for-master"]["securityContext"] == {"runAsUser": 7}

    strict = Wiring(train, builtin(), settings=PluginSettings(strict_upstream=True))
    names = [each["name"] for each in containers(strict.pod(train.tasks[1], 0, pod))["c0"]["env"]]
    assert "RANK" in names
    assert not [name for name in names if name.startswith("PET_")]
