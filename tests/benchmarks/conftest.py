"""The benchmarks are programs, not tests: pytest collects only what tests their measuring."""

collect_ignore_glob = ["[!t]*.py"]
