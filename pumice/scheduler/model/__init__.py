"""The facts that scheduling works on: nodes in columns, pods as slim records grouped by shape."""
