"""Rules on Queues."""
