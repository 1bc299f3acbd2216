"""A session: what one cycle works on. Plugins' answers, node rankings, tentative decisions, outcomes."""

from pumice.scheduler.session.session import Session

__all__ = ["Session"]
