"""The state of the cluster between cycles, which takes in the events of watches."""
