import pytest

from pumice.webhook.settings import AdmissionSettings, SettingError


def test_without_assignments_it_is_volcanos_defaults() -> None:
    settings = AdmissionSettings.from_assignments([])
    assert settings == AdmissionSettings()
    assert settings.scheduler_names == ("volcano",)
    assert settings.max_queue_depth == 5
    assert settings.enable_root_queue_protection
    assert not settings.enable_queue_allocated_pods_check
    assert not settings.strict_upstream


def test_names_have_dashes_and_lists_repeat_theirs() -> None:
    settings = AdmissionSettings.from_assignments(
        ["max-queue-depth=3", "strict-upstream=true", "scheduler-name=a", "scheduler-names=b"]
    )
    assert settings.max_queue_depth == 3
    assert settings.strict_upstream
    assert settings.scheduler_names == ("a", "b")


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("max-queue-depth", "'max-queue-depth' is no setting, expected NAME=VALUE"),
        (
            "max-queue-dept=3",
            "there is no setting 'max-queue-dept' (did you mean \"max-queue-depth\"?)",
        ),
        ("xyz=3", "there is no setting 'xyz', known are scheduler-names, max-queue-depth"),
        ("max-queue-depth=deep", "setting max-queue-depth: expected a whole number, found 'deep'"),
        (
            "max-queue-depth=0",
            "setting max-queue-depth: expected at least 1, found 0",
        ),
        (
            "strict-upstream=perhaps",
            "setting strict-upstream: expected true or false, found 'perhaps'",
        ),
    ],
)
def test_a_mistake_is_one_clear_line(assignment: str, message: str) -> None:
    with pytest.raises(SettingError) as caught:
        AdmissionSettings.from_assignments([assignment])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_setting_is_described() -> None:
    for name, field in AdmissionSettings.declared().items():
        assert field.metadata["description"], name
