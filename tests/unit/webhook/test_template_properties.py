"""What holds for every pod template, however odd."""

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.pods import pod_types
from pumice.webhook.rules.templates import types
from pumice.webhook.rules.templates.table import Site
from tests.unit.webhook.shapes import SCALARS
from tests.unit.webhook.template_rows import judged
from tests.unit.webhook.template_shapes import GROUPS, templates

Raw = dict[str, Any]

_FIELDS = sorted({field for fields in pod_types().values() for field in fields})
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.sampled_from(_FIELDS), st.text(max_size=4)), inner, max_size=5
        ),
    ),
    max_leaves=30,
)
TEMPLATES = st.sampled_from(GROUPS).flatmap(templates)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every member and item below a value: what holds it, and its key there."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in list(pairs):
            yield value, key
            yield from places(inner)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["metadata", "spec", "x"]), JSON))
def test_no_rule_raises_on_any_json(template: Raw) -> None:
    judged(template)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["metadata", "spec", "x"]), JSON))
def test_what_is_read_of_any_json_is_in_order(template: Raw) -> None:
    site = Site(judged({}), "template")
    found, _ = types.read(site, template)
    assert types.read(site, found) == (found, [])


@settings(deadline=None)
@given(TEMPLATES, JSON, st.data())
def test_no_rule_raises_on_any_json_in_any_place(
    template: Raw, value: Any, data: st.DataObject
) -> None:
    template = copy.deepcopy(template)  # fragments of the tables are shared
    holder, key = data.draw(st.sampled_from(list(places(template))))
    holder[key] = value
    before = json.dumps(template)

    first = judged(template)
    assert json.dumps(template) == before
    again = judged(template)
    assert (first.errors, first.warnings) == (again.errors, again.warnings)


def objects(template: Raw) -> list[Raw]:
    """The objects of a template that are no maps: metadata, spec and containers."""
    spec = template["spec"]
    containers = spec["containers"] if isinstance(spec["containers"], list) else []
    found = [template["metadata"], spec, *containers]
    return [each for each in found if isinstance(each, dict) and each]


@settings(deadline=None)
@given(TEMPLATES, st.data())
def test_null_is_as_if_the_field_were_not_there(template: Raw, data: st.DataObject) -> None:
    without, null = copy.deepcopy(template), copy.deepcopy(template)
    index = data.draw(st.sampled_from(range(len(objects(template)))))
    key = data.draw(st.sampled_from(sorted(objects(template)[index])))
    del objects(without)[index][key]
    objects(null)[index][key] = None
    if key != "containers":
        assert judged(null).errors == judged(without).errors


@settings(deadline=None)
@given(TEMPLATES, st.data())
def test_a_field_from_the_future_changes_nothing(template: Raw, data: st.DataObject) -> None:
    newer = copy.deepcopy(template)
    data.draw(st.sampled_from([newer, *objects(newer)]))["zzFromTheFuture"] = {"a": [1, None]}
    assert judged(newer).errors == judged(template).errors
