"""Shares of the cluster: dominant shares, their tree, and what a tree of queues may have."""
