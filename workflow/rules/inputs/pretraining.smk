"""Functions of `pretraining.smk`."""


def stage1_code(wildcards):
    """The digests of the code of a run of Stage 1: of its script and network, and of its loss."""
    loss = code("pretrain", STAGE_1_LOSSES.folder.module(stage1_of(wildcards).objective))
    return [code_of_network("pretrain")(wildcards), loss]
