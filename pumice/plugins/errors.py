"""The error of this package that callers catch."""

__all__ = ["PluginError"]


class PluginError(Exception):
    """A plugin cannot be registered, is unknown, or cannot wire a pod; the message names it."""
