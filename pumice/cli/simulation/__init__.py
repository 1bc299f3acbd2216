"""What `pumice simulate` is made of: its input, the controller in memory, what an API server would add."""
