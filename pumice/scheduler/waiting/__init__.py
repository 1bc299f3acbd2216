"""Gangs and queues that wait: which gangs a cycle tries, and in which order."""

from pumice.scheduler.waiting.parked import Cause

__all__ = ["Cause"]
