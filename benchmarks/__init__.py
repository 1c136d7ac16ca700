"""One script per published figure; each prints what it measured and can write it to `benchmarks/results/`."""
