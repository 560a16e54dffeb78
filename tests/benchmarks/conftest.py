"""The benchmarks are programs, not tests: pytest collects only what tests their measuring."""

collect_ignore_glob = ["bench_*.py", "common.py", "run.py", "tables.py"]
