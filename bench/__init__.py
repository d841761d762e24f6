"""Benchmarks: `make bench` runs the module `bench.run`, `make scaling` the module `bench.scaling`."""
