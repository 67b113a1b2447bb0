"""What karenina costs on this machine: `python -m tests.benchmarks [--json FILE]`, from the root of the repository."""
