"""How many examples hypothesis draws where a test says so itself: fewer in the quick suite, more with profile `deep`."""

from hypothesis import HealthCheck, settings

__all__ = ["examples"]

USUAL = 100
"""Examples of a test that does not say how many, in profile `whole`."""
FEWEST = 10


def examples(number: int) -> settings:
    """Settings of a test that draws the same examples in each run, however long that takes.

    Args:
        number: How many in profile `whole`; other profiles draw proportionally more or fewer.
    """
    scaled = number * settings().max_examples // USUAL
    return settings(
        max_examples=max(scaled, min(number, FEWEST)),
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
