"""Files that are too large for one ConfigMap."""

from hypothesis import given
from hypothesis import strategies as st

from pumice.plugins import shards

LINES = st.integers(0, 40_000)


def text(lines: int) -> str:
    return "\n".join(f"{number:0100}" for number in range(lines))


@given(st.dictionaries(st.sampled_from("abcdef"), LINES, max_size=3))
def test_nothing_is_lost_and_no_config_map_is_too_large(sizes: dict[str, int]) -> None:
    data = {key: text(lines) for key, lines in sizes.items()}

    made = shards.config_maps("j-svc", "ns", data)

    assert all(
        sum(map(len, [*each["data"], *each["data"].values()])) <= shards.LIMIT for each in made
    )
    assert [each["metadata"]["name"] for each in made] == [
        f"j-svc-{number}" if number else "j-svc" for number in range(len(made))
    ]
    together = {key: content for each in made for key, content in each["data"].items()}
    assert sum(len(each["data"]) for each in made) == len(together)
    for key, whole in data.items():
        parts = [part for part in together if part == key or part.startswith(f"{key}.")]
        assert parts == sorted(parts)
        assert "".join(together[part] for part in parts) == whole
        assert all(together[part].endswith("\n") for part in parts[:-1])
        assert shards.is_in_parts(key, len(whole)) is (parts != [key])


def test_those_after_the_first_may_go_while_pods_run() -> None:
    made = shards.config_maps("j-svc", "ns", {"a": text(9_000), "b": text(9_000)})

    assert shards.volume("v", made) == {
        "name": "v",
        "projected": {
            "sources": [
                {"configMap": {"name": "j-svc"}},
                {"configMap": {"name": "j-svc-1", "optional": True}},
            ]
        },
    }
    assert [shards.first_of(each["metadata"]["name"]) for each in made] == ["", "j-svc"]
    assert [shards.first_of(each) for each in ("j-svc-01", "j-0", "x", "j-", "j-1-12")] == [
        *("", "", "", ""),
        "j-1",
    ]


def test_what_fits_is_one_config_map_and_a_plain_volume() -> None:
    made = shards.config_maps("j-svc", "ns", {"a": "1"})

    assert [each["data"] for each in made] == [{"a": "1"}]
    assert shards.volume("v", made) == {"name": "v", "configMap": {"name": "j-svc"}}
