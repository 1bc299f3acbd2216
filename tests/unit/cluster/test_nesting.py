"""Bodies that are nested more deeply than the decoder can follow."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.reading import DEEPEST, decode

ANY = msgspec.json.Decoder()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('"\\\\[]{}:,ü', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('"\\\\]}', max_size=3), inner, max_size=3),
    max_leaves=9,
)  # fmt: skip


@given(JSON, JSON, st.sampled_from(["[", '{"a":']))
def test_only_what_is_too_deep_is_left_out(before: object, after: object, begin: str) -> None:
    end = "]" if begin == "[" else "}"
    deep = begin * 20_000 + json.dumps(before) + end * 20_000
    body = f"[{json.dumps(before)}, {deep}, {json.dumps(after)}]"
    found = decode(ANY, body.encode())
    assert [found[0], found[2]] == [before, after]
    depth, inner = 1, found[1]
    while inner is not None:
        (inner,) = inner if isinstance(inner, list) else inner.values()
        depth += 1
    assert depth == DEEPEST


@pytest.mark.parametrize(
    "body", [b"[" * 20_000, b"[" * 20_000 + b"]" * 19_999, b'"', b"]" * 9, b""]
)
def test_what_is_no_json_is_an_error(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(ANY, body)
