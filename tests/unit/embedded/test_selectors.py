"""Label and field selectors."""

from typing import Any

import pytest

from pumice.embedded.selectors import parse_fields, parse_labels, selector
from pumice.embedded.statuses import ApiStatusError
from tests.unit.embedded.support import cases, pod

TABLE = cases("label-selectors")


@pytest.mark.parametrize("row", TABLE["rows"], ids=lambda row: row["selector"] or "empty")
def test_labels_are_selected(row: dict[str, Any]) -> None:
    test = parse_labels(row["selector"])

    found = [name for name, labels in TABLE["labels"].items() if test is None or test(labels)]

    assert found == row["selects"]


@pytest.mark.parametrize("text", TABLE["refused"])
def test_what_is_no_label_selector_is_refused(text: str) -> None:
    with pytest.raises(ApiStatusError) as caught:
        parse_labels(text)

    assert caught.value.code == 400


@pytest.mark.parametrize(
    ("text", "selects"),
    [
        ("metadata.name=p", True),
        ("metadata.name!=p", False),
        ("spec.nodeName=", True),
        ("spec.nodeName=n", False),
        ("status.phase==Running,metadata.namespace=default", True),
        ("status.phase!=Running", False),
        ("spec.hostNetwork=false", True),
    ],
)
def test_fields_are_selected(text: str, selects: bool) -> None:
    obj = pod() | {"status": {"phase": "Running"}}
    test = parse_fields(text, ["spec.nodeName", "status.phase", "spec.hostNetwork"])

    assert test is not None
    assert test(obj) is selects


def test_the_source_of_an_event_is_its_component() -> None:
    test = parse_fields("source=scheduler", ["source"])

    assert test is not None
    assert test({"source": {"component": "scheduler", "host": "n"}})


@pytest.mark.parametrize("text", ["spec.colour=red", "metadata.name", "="])
def test_other_fields_are_refused(text: str) -> None:
    with pytest.raises(ApiStatusError) as caught:
        parse_fields(text)

    assert caught.value.code == 400


def test_both_selectors_must_hold() -> None:
    labelled = pod()
    labelled["metadata"]["labels"] = {"a": "b"}
    selected = selector("a=b", "metadata.name=p")

    assert selected(labelled)
    assert not selected(pod())
    assert not selector("a=b", "metadata.name=q")(labelled)
    assert selector("", "")(pod())
