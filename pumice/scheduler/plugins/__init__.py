"""What decides within the steps: one plugin a file, registered in `pumice/scheduler/registry.py`."""
