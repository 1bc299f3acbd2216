"""A page in the browser that has exchanged the secret for the cookie."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page

SECONDS = 30_000
"""Milliseconds in which the page must show a change, on a machine that has much else to do."""


@contextmanager
def page_at(browser: Browser, address: str, **options: Any) -> Iterator[Page]:
    """Open the page; what the browser complains about fails the test, and so does a dialog."""
    context = browser.new_context(viewport={"width": 1000, "height": 560}, **options)
    context.set_default_timeout(SECONDS)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda each: complaints.append(each.text) if each.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(f"a dialog: {dialog.message}"))
    page.goto(address)
    yield page
    context.close()
    assert not complaints
