"""Choosing pods to evict for a pod that fits nowhere: rules, lower bounds a node, exact sets of victims, and the search."""
