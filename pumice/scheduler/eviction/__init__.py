"""Choosing pods to evict for a pod that fits nowhere: rules, lower bounds a node, exact plans, and the search."""
