"""Placing the pods of one gang: their order, and the domain of the network in which they go together."""
