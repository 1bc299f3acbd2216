"""Rules on pods of the configured schedulers, and on pods of other controllers."""
