"""No file is too odd for the reader: it is understood, or refused with a reason."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.setting_errors import SettingError
from pumice.webhook.resource_group_file import parse
from tests.unit.webhook.shapes import JSON


def json_of(value: Any) -> bytes:
    return msgspec.json.encode(value) if fits(value) else b"{}"


def fits(value: Any) -> bool:
    """Whether msgspec can write a value."""
    if isinstance(value, dict):
        return all(map(fits, value.values()))
    if isinstance(value, list):
        return all(map(fits, value))
    return not isinstance(value, int) or -(2**63) <= value < 2**64


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["resourceGroups", "object", "key", "value"]), JSON), JSON)
def test_no_content_is_too_odd_for_the_reader(content: dict[str, Any], group: Any) -> None:
    for conf in (content, {"resourceGroups": [content, group]}):
        try:
            parse(json_of(conf))
        except SettingError:
            continue


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_are_too_odd_for_the_reader(raw: bytes) -> None:
    for text in (raw, b"resourceGroups:\n- " + raw):
        try:
            parse(text)
        except SettingError:
            continue
