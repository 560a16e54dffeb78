"""Attention of the networks of an experiment: on relevant tokens, against people, and as a page to look at."""
