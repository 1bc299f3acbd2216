"""How many examples hypothesis draws where a test says so itself: fewer in the quick suite, more with profile `deep`."""

from hypothesis import HealthCheck, settings

USUAL = 100
"""Examples of which a profile draws as many as its tests that do not say how many; `whole` draws 40."""
FEWEST = 10


def examples(number: int, *, always_the_same: bool = True) -> settings:
    """Settings of a test, however long it takes.

    Args:
        number: How many examples are drawn where a usual test draws 100; a profile draws proportionally more or fewer.
        always_the_same: Draw the same examples in each run.
    """
    scaled = number * settings().max_examples // USUAL
    return settings(
        max_examples=max(scaled, min(number, FEWEST)),
        deadline=None,
        derandomize=always_the_same,
        suppress_health_check=[HealthCheck.too_slow],
    )
