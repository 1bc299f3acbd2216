"""Names of the Jobs that a plugin is asked about: several, so that what it keeps of one shows in another."""

__all__ = ["JOB_NAMES"]

JOB_NAMES = ("train", "sweep", "a-1")
