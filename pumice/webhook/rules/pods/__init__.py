"""Rules on pods of the schedulers that are configured, and of controllers other than Pumice's."""
