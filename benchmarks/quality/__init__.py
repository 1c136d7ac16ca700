"""How good the judges are on data that people judged: `python -m benchmarks.quality --data DIR`."""
