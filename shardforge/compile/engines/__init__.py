"""Engines run shard tasks; all of them run the same function."""
