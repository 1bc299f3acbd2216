"""Results for texts of users are kept, except for long texts."""

from pumice.api.remembering import remembered

LONG = "x" * 1000


def test_results_for_short_texts_are_kept_and_those_for_long_ones_are_not() -> None:
    computed: list[tuple[str, object]] = []

    @remembered(2)
    def measure(text: str, other: object = None) -> int:
        computed.append((text, other))
        return len(text)

    assert [measure("a"), measure("a"), measure("a", "b"), measure("a", "b")] == [1, 1, 1, 1]
    assert computed == [("a", None), ("a", "b")]
    computed.clear()
    assert [measure(LONG), measure(LONG), measure("a", LONG), measure("a", LONG)] == [
        1000,
        1000,
        1,
        1,
    ]
    assert len(computed) == 4
