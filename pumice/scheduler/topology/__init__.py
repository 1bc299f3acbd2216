"""The topology of the network: HyperNodes as a tree of domains."""
