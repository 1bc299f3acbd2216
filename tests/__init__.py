"""The tests, as a package: so it is found before those that other packages install under this name."""
