"""How many examples hypothesis draws where a test says so itself: fewer in the quick suite, more with profile `deep`."""

from hypothesis import HealthCheck, settings

__all__ = ["examples"]

USUAL = 100
"""Examples of a test that does not say how many, in profile `whole`."""
FEWEST = 10


def examples(number: int, *, always_the_same: bool = True) -> settings:
    """Settings of a test, however long it takes.

    Args:
        number: How many examples in profile `whole`; other profiles draw proportionally more or fewer.
        always_the_same: Draw the same examples in each run.
    """
    scaled = number * settings().max_examples // USUAL
    return settings(
        max_examples=max(scaled, min(number, FEWEST)),
        deadline=None,
        derandomize=always_the_same,
        suppress_health_check=[HealthCheck.too_slow],
    )
