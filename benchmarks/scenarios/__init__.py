"""Fire scenarios: what happens to a sweep, and what must come of it."""

from .ray_cluster import ray_cluster

SCENARIOS = {"ray_cluster": ray_cluster}
"""Name → function of a directory that raises AssertionError when a promise is broken."""
