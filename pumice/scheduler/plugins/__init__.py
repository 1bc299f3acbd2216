"""Plugins: one file each, registered in `pumice/scheduler/registry.py`."""
