"""Why nodes and queues refuse pods, as sentences and as data."""
