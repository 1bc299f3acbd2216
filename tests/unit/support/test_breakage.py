"""A call that is to fail is told from others, whatever uids and addresses come along with it."""

import pytest

from tests.kit.breakage import is_about_bad, pauses_grow


@pytest.mark.parametrize("about", ["bad", ("default/bad-0",), {"uid": "uid-bad"}, "name='bad'"])
def test_it_is_about_the_object(about: object) -> None:
    assert is_about_bad(about)


@pytest.mark.parametrize(
    "about",
    [
        "good",
        "<object at 0x7fbad0123450>",
        "<object at 0xbad012345678>",
        "<object at 0x7f0123456bad>",
        "01234567-bad0-4bad-8000-000000000bad",
    ],
)
def test_it_is_about_something_else(about: object) -> None:
    assert not is_about_bad(about)


@pytest.mark.parametrize(
    ("tries", "grow"),
    [
        ([0, 1, 3, 7], True),
        ([0, 3, 5, 9], True),
        ([0, 1, 2, 6], False),
        ([0, 9, 10, 12, 16], True),
        ([0, 1, 3], False),
    ],
)
def test_pauses_that_double_may_be_longer(tries: list[float], grow: bool) -> None:
    assert pauses_grow(tries, 1.0) is grow
