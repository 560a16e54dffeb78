"""PLANT: Pretrained and Leveraged Attention (arXiv 2410.23066), as a reproducible pipeline.

Rooms, in the order in which data and imports run: corpus, relevance, model, pretraining, finetuning,
evaluation, statistics, paper. Nothing imports a room to its right.
"""

__version__ = "0.1.0"
