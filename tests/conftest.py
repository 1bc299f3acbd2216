"""Fixtures that several folders share."""

pytest_plugins = ["tests.support.fixtures"]
