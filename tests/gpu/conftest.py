"""Lets the tests of this folder import the steps as `run.py` does. The steps are no tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

collect_ignore_glob = ["[!t]*.py"]
