"""Tests for your own extensions of Pumice, to be called from your test suite.

A package with a job plugin tests the plugin with one call:

    from pumice.testing import check_job_plugin

    def test_contract() -> None:
        check_job_plugin(MyPlugin)

The call asks the plugin about Jobs that hypothesis generates, so hypothesis must be installed in
the environment of your tests. `pumice plugins check` runs the same checks from the command line.
"""

from pumice.testing.job_plugins import Result, check_job_plugin, job_plugin_results

__all__ = ["Result", "check_job_plugin", "job_plugin_results"]
