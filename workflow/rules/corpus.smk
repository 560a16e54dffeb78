"""Corpus: from raw files to documents, labels, splits and tokens.

REQUIRED INPUTS
    the dataset's raw files (config: datasets.<name>.path); or a generator of stand-ins in the same form (generate);
    or another dataset that it is a part of (source: subset)
    what the config's `downloads` names is fetched from its public home where it is missing

OUTPUTS
    results/corpus/<dataset>/{train,val,test,labels}.parquet, labels.safetensors, statistics.json
    results/corpus/<dataset>/mentions.parquet, marks.parquet, where the source has some
    results/corpus/<dataset>/<backbone>/tokens.safetensors, vocabulary.parquet, statistics.json
"""


include: "inputs/corpus.smk"


SPLIT_FILES = ["train.parquet", "val.parquet", "test.parquet"]
CORPUS_FILES = [*SPLIT_FILES, "labels.parquet", "labels.safetensors", "statistics.json", "provenance.json"]
SUBSETS = [name for name, dataset in SETTINGS.datasets.items() if dataset.source == "subset"]
STAND_INS = [name for name, dataset in SETTINGS.datasets.items() if getattr(dataset, "generate", None)]
DOWNLOADS = {str(Path(download.path)): download for download in SETTINGS.downloads.values()}
ARCHIVES = [path for path, download in DOWNLOADS.items() if download.unpack]


rule fetch:
    """A public file from its home, checked. What is there already (put there by hand, say) is left alone."""
    output:
        target=update("{place}"),
    log:
        "logs/downloads/{place}.log",
    wildcard_constraints:
        place=one_of(path for path in DOWNLOADS if path not in ARCHIVES),
    localrule: True
    params:
        settings=lambda wildcards: section(download=DOWNLOADS[wildcards.place]),
        screen="warnings",
    script:
        "../scripts/fetch.py"


use rule fetch as fetch_archive with:
    output:
        target=update(directory("{place}")),
    wildcard_constraints:
        place=one_of(ARCHIVES),


rule synthetic:
    """A stand-in in the dataset's raw form, so that it goes through the real ingestion."""
    output:
        raw=directory("<results>/corpus/{dataset}/raw"),
        provenance="<results>/corpus/{dataset}/raw.provenance.json",
    log:
        "logs/corpus/{dataset}/synthetic.log",
    wildcard_constraints:
        dataset=one_of(STAND_INS),
    params:
        settings=lambda wildcards: section(wildcards.dataset, dataset=SETTINGS.datasets[wildcards.dataset]),
        code=code("synthetic"),
    script:
        "../scripts/synthetic.py"


rule corpus:
    """Read, clean, split and check one dataset."""
    input:
        raw=branch(
            lambda wildcards: wildcards.dataset in STAND_INS, then="<results>/corpus/{dataset}/raw", otherwise=[]
        ),
        downloads=downloads,
    output:
        multiext("<results>/corpus/{dataset}/", *CORPUS_FILES),
    log:
        "logs/corpus/{dataset}/corpus.log",
    wildcard_constraints:
        dataset=one_of(name for name in SETTINGS.datasets if name not in SUBSETS),
    resources:
        mem_mb=attempts(8000),
    params:
        settings=corpus_settings,
        screen="warnings",
        code=lambda wildcards: code("corpus", *formats.modules_of(SETTINGS.datasets[wildcards.dataset])),
    script:
        "../scripts/corpus.py"


rule subset:
    """A corpus that is part of another one: other labels, other lists, a smaller training split."""
    input:
        documents=lambda wildcards: multiext(
            f"{R}/corpus/{SETTINGS.whole(wildcards.dataset)}/", *SPLIT_FILES, "labels.parquet", "statistics.json"
        ),
        downloads=downloads,
    output:
        multiext("<results>/corpus/{dataset}/", *CORPUS_FILES),
    log:
        "logs/corpus/{dataset}/subset.log",
    wildcard_constraints:
        dataset=one_of(SUBSETS),
    resources:
        mem_mb=attempts(8000),
    params:
        settings=corpus_settings,
        code=code("subset"),
    script:
        "../scripts/subset.py"


rule marked:
    """What people marked in the training texts as the reason of a label, where the source says so."""
    input:
        documents=multiext("<results>/corpus/{dataset}/", "train.parquet", "labels.parquet", "labels.safetensors"),
        downloads=downloads,
    output:
        table="<results>/corpus/{dataset}/mentions.parquet",
        provenance="<results>/corpus/{dataset}/mentions.provenance.json",
    log:
        "logs/corpus/{dataset}/marked.log",
    params:
        settings=corpus_settings,
        code=code("marks"),
    script:
        "../scripts/marks.py"


use rule marked as marks with:
    """Where people marked words in the test texts as the reason of a label. Only measurements read it."""
    input:
        documents=multiext("<results>/corpus/{dataset}/", "test.parquet", "labels.parquet"),
        downloads=downloads,
    output:
        table="<results>/corpus/{dataset}/marks.parquet",
        provenance="<results>/corpus/{dataset}/marks.provenance.json",
    log:
        "logs/corpus/{dataset}/marks.log",


rule tokenizer:
    """A byte-level BPE tokenizer for a random backbone, trained on the training split."""
    input:
        train="<results>/corpus/{dataset}/train.parquet",
    output:
        tokenizer=directory("<results>/corpus/{dataset}/{backbone}/tokenizer"),
        provenance="<results>/corpus/{dataset}/{backbone}/tokenizer.provenance.json",
    log:
        "logs/corpus/{dataset}/{backbone}/tokenizer.log",
    params:
        settings=settings_of(vocabulary=lambda wildcards: SETTINGS.backbones[wildcards.backbone].vocabulary),
        code=code("tokenizer"),
    script:
        "../scripts/tokenizer.py"


rule tokens:
    """Every document as input ids with character spans; special tokens are not stored."""
    input:
        documents=multiext("<results>/corpus/{dataset}/", *SPLIT_FILES),
        tokenizer=made_tokenizer,
    output:
        tokens="<results>/corpus/{dataset}/{backbone}/tokens.safetensors",
        vocabulary="<results>/corpus/{dataset}/{backbone}/vocabulary.parquet",
        statistics="<results>/corpus/{dataset}/{backbone}/statistics.json",
        provenance="<results>/corpus/{dataset}/{backbone}/provenance.json",
    log:
        "logs/corpus/{dataset}/{backbone}/tokens.log",
    params:
        settings=settings_of("backbone"),
        screen="warnings",
        code=code("tokens"),
    script:
        "../scripts/tokens.py"
