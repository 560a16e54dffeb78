"""PLANT: Pretrained and Leveraged Attention (arXiv 2410.23066), as a reproducible pipeline.

Folders, in the order of imports: ground, kernels, metrics, corpus, relevance, model, pretraining, finetuning,
baselines, evidence, evaluation, statistics, paper and serving, commandline. Nothing imports a folder to its right.
"""

__version__ = "0.1.0"
