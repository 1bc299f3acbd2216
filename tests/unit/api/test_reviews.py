"""Reviews: what an answer says, and that all of it arrives."""

import pytest

from pumice.api import reviews
from pumice.api.fields import FieldError
from pumice.api.reviews import ALL_WARNING_CHARACTERS, WARNING_CHARACTERS, denied, fitting


def errors(count: int, length: int = 10) -> list[FieldError]:
    return [FieldError(f"spec.a[{i}]", "x" * length, "CODE") for i in range(count)]


def message(found: list[FieldError], *, kind: str = "", name: str = "") -> str:
    status = denied(found, kind=kind, name=name).status
    assert status is not None
    return status.message


def test_the_message_names_the_object_and_counts() -> None:
    one, two = errors(1), errors(2)
    assert message(one) == "spec.a[0]: xxxxxxxxxx [CODE]"
    assert message(one, kind="Job", name="n") == 'Job "n": spec.a[0]: xxxxxxxxxx [CODE]'
    assert message(two, kind="Job", name="n").splitlines()[0] == 'Job "n" has 2 problems:'
    assert message(two, kind="Job").splitlines()[0] == "Job has 2 problems:"
    assert message(two).splitlines()[0] == "2 problems:"


def test_a_long_message_ends_with_how_many_more_there_are() -> None:
    found = denied(errors(50))
    assert found.status is not None
    lines = found.status.message.splitlines()
    assert len(lines) == 22
    assert lines[-1] == "… and 30 more, which `pumice lint` shows"
    assert found.status.details is not None
    assert len(found.status.details["causes"]) == 50
    assert len(message(errors(20)).splitlines()) == 21


def test_what_the_audit_log_notes_travels_with_every_answer() -> None:
    note = {"warned": "A"}
    assert reviews.allowed(["w"], note).audit_annotations == note
    assert reviews.patched([], ["w"], note).audit_annotations == note
    operation = reviews.PatchOperation("add", "/a", 1)
    assert reviews.patched([operation], ["w"], note).audit_annotations == note
    assert denied(errors(1), [], note).audit_annotations == {"rules": "CODE", "warned": "A"}
    assert reviews.allowed().audit_annotations is None


def test_warnings_stay_whole_while_there_is_room() -> None:
    found = errors(3, length=900)
    assert fitting(found) == [str(each) for each in found]
    assert fitting([*found, found[0]]) == [str(each) for each in found]


def test_warnings_without_room_are_cut_before_their_code() -> None:
    texts = fitting(errors(5, length=900))
    assert len(texts) == 5
    for number, text in enumerate(texts):
        assert len(text) == WARNING_CHARACTERS
        assert text.startswith(f"spec.a[{number}]: xxx")
        assert text.endswith("x… [CODE]")


@pytest.mark.parametrize(("count", "length"), [(30, 900), (500, 20), (2000, 0)])
def test_warnings_that_do_not_fit_are_counted(count: int, length: int) -> None:
    texts = fitting(errors(count, length=length))
    assert sum(map(len, texts)) <= ALL_WARNING_CHARACTERS
    more = count - len(texts) + 1
    assert texts[-1] == f"and {more} more warnings, which `pumice lint` shows"
    assert len(texts) > 10
