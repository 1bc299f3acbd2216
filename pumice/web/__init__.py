"""The read-only page of `pumice web`: HTTP, HTML and who may ask. What it shows comes from a `ViewSource`."""

from pumice.web.pages import Commands
from pumice.web.server import ViewSource, WebServer

__all__ = ["Commands", "ViewSource", "WebServer"]
