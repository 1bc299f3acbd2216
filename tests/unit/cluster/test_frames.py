"""Watch events come out whole however the network cuts them."""

import itertools
import json
from collections.abc import AsyncIterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.reading import frames

EVENTS = [("ADDED", {"a": "ü\n"}), ("MODIFIED", {"b": ["x" * 50]}), ("BOOKMARK", {})]
WIRE = b"".join(
    json.dumps({"type": event, "object": obj}).encode() + b"\n" for event, obj in EVENTS
)


async def chunked(wire: bytes, cuts: list[int]) -> AsyncIterator[bytes]:
    edges = [0, *sorted(cuts), len(wire)]
    for start, end in itertools.pairwise(edges):
        yield wire[start:end]


async def read(wire: bytes, cuts: list[int]) -> list[tuple[str, object]]:
    return [(event, msgspec.json.decode(raw)) async for event, raw in frames(chunked(wire, cuts))]


@given(st.lists(st.integers(0, len(WIRE)), max_size=12))
async def test_any_cut_gives_the_same_events(cuts: list[int]) -> None:
    assert await read(WIRE, cuts) == EVENTS


async def test_empty_lines_are_no_events() -> None:
    assert await read(b"\n\n" + WIRE + b"\n", []) == EVENTS


async def test_an_unfinished_line_is_dropped() -> None:
    assert await read(WIRE[:-1], [10]) == EVENTS[:-1]


async def test_a_line_that_is_no_event_is_an_error() -> None:
    with pytest.raises(msgspec.DecodeError):
        await read(b"<html>\n", [])
