import pytest

from pumice.api.setting_errors import SettingError
from pumice.webhook.settings import AdmissionSettings


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
        ("max-queue-depth", '"max-queue-depth" is no setting, expected NAME=VALUE'),
        ("=3", '"=3" is no setting, expected NAME=VALUE'),
        (
            "max-queue-dept=3",
            'max-queue-dept: unknown key (did you mean "max-queue-depth"?)',
        ),
        ("xyz=3", "xyz: unknown key, known are scheduler-names, max-queue-depth"),
        ("max-queue-depth=deep", 'max-queue-depth: must be an integer, found the string "deep"'),
        (
            "max-queue-depth=0",
            "max-queue-depth: must be at least 1, found the integer 0",
        ),
        ("scheduler-name=", "scheduler-names[0]: must be a name, found an empty string"),
        (
            "strict-upstream=perhaps",
            'strict-upstream: must be true or false, found the string "perhaps"',
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
