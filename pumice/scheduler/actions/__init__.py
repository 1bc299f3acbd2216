"""The actions of a cycle, one file each."""
