"""The data of scheduling: nodes in columns, pods as small records grouped by shape."""
