"""Fixtures that several folders share."""

from hypothesis import settings

pytest_plugins = ["tests.support.fixtures"]

settings.register_profile("quick", max_examples=15, deadline=None)
settings.register_profile("deep", max_examples=2000, deadline=None)
