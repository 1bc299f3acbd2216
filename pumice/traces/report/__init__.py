"""The report of simulated runs: one HTML page without scripts, with nothing to fetch."""

from pumice.traces.report.page import World, report

__all__ = ["World", "report"]
