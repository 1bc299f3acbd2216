"""The report of simulated runs: one HTML page without scripts, with nothing to fetch."""

from pumice.traces.report.page import MeasuredRun, report

__all__ = ["MeasuredRun", "report"]
