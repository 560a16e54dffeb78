"""Model: random backbones, word vectors, cached hidden states of frozen ones, label embeddings from descriptions.

REQUIRED INPUTS
    results/corpus/<dataset>/<backbone>/tokenizer/   (random backbones)
    results/corpus/<dataset>/<backbone>/tokens.safetensors, vocabulary.parquet
    a file of word vectors or of published weights   (word networks that name one)

OUTPUTS
    results/model/<dataset>/<backbone>/backbone/     a Hugging Face folder
    results/model/<dataset>/<backbone>/language_model.safetensors, word_vectors.safetensors, features.safetensors, label_embeddings.safetensors
"""


rule random_backbone:
    """A small transformer with random weights beside its tokenizer."""
    input:
        tokenizer="<results>/corpus/{dataset}/{backbone}/tokenizer",
    output:
        backbone=directory("<results>/model/{dataset}/{backbone}/backbone"),
        provenance="<results>/model/{dataset}/{backbone}/backbone.provenance.json",
    log:
        "logs/model/{dataset}/{backbone}/random_backbone.log",
    params:
        settings=settings_of("backbone"),
        code=code("random_backbone"),
    script:
        "../scripts/random_backbone.py"


rule word_vectors:
    """Initial vectors of a corpus's words: trained on its training split, or taken from the user's file."""
    input:
        labels="<results>/corpus/{dataset}/labels.safetensors",
        tokens="<results>/corpus/{dataset}/{backbone}/tokens.safetensors",
        vocabulary="<results>/corpus/{dataset}/{backbone}/vocabulary.parquet",
    output:
        vectors="<results>/model/{dataset}/{backbone}/word_vectors.safetensors",
        provenance="<results>/model/{dataset}/{backbone}/word_vectors.provenance.json",
    log:
        "logs/model/{dataset}/{backbone}/word_vectors.log",
    params:
        settings=settings_of("backbone"),
        code=code("word_vectors"),
    script:
        "../scripts/word_vectors.py"


rule language_model:
    """A language model of the training texts, from which a recurrent encoder starts; continues where it was interrupted."""
    input:
        labels="<results>/corpus/{dataset}/labels.safetensors",
        tokens="<results>/corpus/{dataset}/{backbone}/tokens.safetensors",
        vocabulary="<results>/corpus/{dataset}/{backbone}/vocabulary.parquet",
    output:
        weights="<results>/model/{dataset}/{backbone}/language_model.safetensors",
        history="<results>/model/{dataset}/{backbone}/language_model.parquet",
        provenance="<results>/model/{dataset}/{backbone}/language_model.provenance.json",
    log:
        "logs/model/{dataset}/{backbone}/language_model.log",
    threads: training_threads
    resources:
        gpu=devices_of_one_process,
        mem_mb=attempts(16000),
    params:
        settings=settings_of("backbone", "compute"),
        code=code_of_network("language_model"),
    script:
        "../scripts/language_model.py"


rule features:
    """Hidden states of a frozen backbone for every token, once."""
    input:
        labels="<results>/corpus/{dataset}/labels.safetensors",
        tokens="<results>/corpus/{dataset}/{backbone}/tokens.safetensors",
    output:
        features="<results>/model/{dataset}/{backbone}/features.safetensors",
        provenance="<results>/model/{dataset}/{backbone}/features.provenance.json",
    log:
        "logs/model/{dataset}/{backbone}/features.log",
    threads: 8
    resources:
        gpu=devices_of_one_process,
        mem_mb=attempts(16000),
    params:
        settings=settings_of("backbone", "compute"),
        backbone=backbone_source,
        code=code("features"),
    script:
        "../scripts/features.py"


rule label_embeddings:
    """Mean hidden state of each label's description, for recipes that start from them (choice C22)."""
    input:
        labels="<results>/corpus/{dataset}/labels.safetensors",
        tokens="<results>/corpus/{dataset}/{backbone}/tokens.safetensors",
        made=made_backbone,
        names="<results>/corpus/{dataset}/labels.parquet",
        tokenizer=made_tokenizer,
    output:
        embeddings="<results>/model/{dataset}/{backbone}/label_embeddings.safetensors",
        provenance="<results>/model/{dataset}/{backbone}/label_embeddings.provenance.json",
    log:
        "logs/model/{dataset}/{backbone}/label_embeddings.log",
    resources:
        gpu=devices_of_one_process,
        mem_mb=attempts(16000),
    params:
        settings=settings_of("backbone", "compute"),
        backbone=backbone_source,
        code=code("label_embeddings"),
    script:
        "../scripts/label_embeddings.py"
