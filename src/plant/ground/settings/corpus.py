"""Sections `downloads` and `datasets`: sources, cleaning, splits, label spaces."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from plant.ground.settings.base import Count, FilePath, Fraction, Frozen, Name, Positive, Seed


class Download(Frozen):
    """A public file that a rule downloads if it is missing. Data under credentials is never downloaded."""

    url: str
    """Address of the file: https:// or file://. An http:// or ftp:// address needs `sha256`, because others could
    change the file on the way."""
    path: FilePath
    """Where the file is saved. A dataset that names this path, or one above or below it, waits for the download."""
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    """SHA-256 of the downloaded file. If it is not set, the SHA-256 of the first download is written beside the file,
    and a warning asks you to copy it here."""
    unpack: bool = False
    """True: the file is an archive (zip, tar), and `path` is the folder it is unpacked into."""
    licence: str | None = None
    """Licence of the file, for the log of the download and the note beside the file."""

    @model_validator(mode="after")
    def _cannot_be_changed_on_the_way(self) -> Download:
        if self.url.startswith(("http://", "ftp://")) and self.sha256 is None:
            raise ValueError("url: expected https://, or a sha256 beside an address that anybody on the way can change")
        return self


class Split(Frozen):
    """How documents are divided into train, val and test if the source has no split of its own."""

    name: str | None = None
    """Name of the published split. Tables print it. Scores of different splits are never compared, whatever their
    names: the document ids decide."""

    train: Fraction = 0.7
    """Fraction of the documents in the train split."""
    val: Fraction = 0.1
    """Fraction of the documents in the validation split. If a source publishes no validation split, this fraction of
    train is held out (choice C18)."""
    test: Fraction = 0.2
    """Fraction of the documents in the test split."""
    seed: Seed = 0
    """Seed of the random split, of `train_size` and of `val_size`."""
    ids: dict[Literal["train", "val", "test"], FilePath] | None = None
    """Published id lists: one file for each split, with one document id per line. They replace the fractions."""
    table: FilePath | None = None
    """A published feather or parquet file with the columns `_id` and `split`. It replaces the fractions."""

    @model_validator(mode="after")
    def _adds_up(self) -> Split:
        total = self.train + self.val + self.test
        if abs(total - 1) > 1e-9:
            raise ValueError(f"train + val + test must be 1, got {total:g}")
        if self.ids is not None and self.table is not None:
            raise ValueError("give either `ids` or `table`, not both")
        return self


class Cleaning(Frozen):
    """Text cleaning. It changes results: the micro-F1 of one published model moves from 58.9 to 59.8."""

    style: Literal["edin", "caml", "raw"] = "raw"
    """edin: lower case, other characters than letters and digits become spaces, separate numbers are dropped. caml:
    lower-cased word tokens without pure numbers (the paper's appendix C, choice C31). raw: the text as it is."""
    max_words: Positive | None = None
    """Number of words kept from the start of a document (edin: 4000, caml: 2500)."""


class LabelFilter(Frozen):
    """Which labels are kept."""

    name: str | None = None
    """Name of the published label set. Scores on different label sets are never compared."""
    min_count: Positive = 1
    """Labels with fewer documents in all splits together are dropped before the split. Edin's MIMIC-IV uses 10."""
    keep: FilePath | None = None
    """A file with one label per line. All other labels are dropped."""
    top: Positive | None = None
    """Keep this number of labels: the most frequent ones in all documents. Ties are broken by name."""
    train_at_least: Count = 0
    """Labels with fewer training documents are dropped (MIMIC-III-few: 1)."""
    train_at_most: Positive | None = None
    """Labels with more training documents are dropped (MIMIC-III-few: 5; choice C20)."""
    test_at_least: Count = 0
    """Labels with fewer test documents are dropped (MIMIC-III-few: 1)."""


class Generate(Frozen):
    """A synthetic corpus in the raw format of the source. Each code has indicator words, which favours relevance
    measures that look at the presence of words."""

    admissions: Annotated[int, Field(gt=0, le=10_000_000)] = 1500
    """Number of admissions. Some patients have several."""
    codes: Annotated[int, Field(gt=0, le=1_000_000)] = 150
    """Number of different ICD-9 codes. Their use follows a Zipf distribution."""
    words: Annotated[int, Field(gt=0, le=10_000_000)] = 3000
    """Number of words in the background vocabulary (Zipf distribution)."""
    words_per_note: Annotated[int, Field(gt=0, le=1_000_000)] = 90
    """Mean number of words in a discharge summary."""
    codes_per_admission: Annotated[float, Field(gt=0)] = 6.0
    """Mean number of codes of an admission."""
    indicator_rate: Fraction = 0.8
    """Probability that a code of an admission shows one of its indicator words in the text."""
    distractor_rate: Fraction = 0.3
    """Probability that a note mentions, in negated form, the indicator word of a code that it does not have."""
    seed: Seed = 0
    """Seed of the generated corpus."""


class Expected(Frozen):
    """Published sizes. Differences are reported in the log, in statistics.json and below every table. The plan of the
    grid uses these numbers before the corpus exists."""

    train: Positive | None = None
    """Number of training documents."""
    val: Positive | None = None
    """Number of validation documents."""
    test: Positive | None = None
    """Number of test documents."""
    labels: Positive | None = None
    """Number of labels in all splits together."""
    tokens: Positive | None = None
    """Mean number of tokens in a document (LLM tokenizer). Only the plan uses it."""


class _Dataset(Frozen):
    source: str
    """Format of the raw files."""
    cleaning: Cleaning = Cleaning()
    """Text cleaning, applied before tokenization."""
    split: Split = Split()
    """How documents are divided, if the source has no split."""
    labels: LabelFilter = LabelFilter()
    """Which labels are kept."""
    train_size: Positive | None = None
    """Number of training documents to keep, drawn with the seed of the split. None: all."""
    val_size: Positive | None = None
    """Number of validation documents to keep, drawn in the same way. None: all. The test split is never reduced."""
    draw: Literal["random", "stratified"] = "stratified"
    """How `train_size` and `val_size` draw documents: at random, or with every label in proportion (choice C21). A
    larger sample always contains every smaller one."""
    expected: Expected = Expected()
    """Published sizes of this corpus."""
    descriptions: FilePath | None = None
    """File with label descriptions, used in place of those of the source. Either a table with the columns label and
    description (a label may have several rows: a title and synonyms), or the .xml tabular list of ICD-10-CM."""
    category_ends: str | None = None
    """The category of a label is the part of its name before this text (ICD: "."). The channel `categories` uses it
    (choice C30). None: labels have no categories."""
    credentialed: bool = False
    """True: only the owner can read the outputs, and no text is shown in figures or reports unless you ask for it."""

    @property
    def sources(self) -> dict[str, str]:
        """Key of this section -> the file or folder that it names."""
        files = {
            "path": getattr(self, "path", None),
            "mentions": getattr(self, "mentions", None),
            "descriptions": self.descriptions,
            "split.table": self.split.table,
            "labels.keep": self.labels.keep,
        }
        for key, paths in (("split.ids", self.split.ids), ("files", getattr(self, "files", None))):
            files |= {f"{key}.{name}": path for name, path in (paths or {}).items()}
        return {key: path for key, path in files.items() if path is not None}

    @property
    def lists(self) -> tuple[str, ...]:
        """The files that `split`, `labels` and `descriptions` name."""
        lists = ("split", "labels", "descriptions")
        return tuple(path for key, path in self.sources.items() if key.startswith(lists))

    @property
    def has_mentions(self) -> bool:
        """Whether people marked, in the training texts, the words that are the reason for a label."""
        return False


class _Raw(_Dataset):
    """A published raw format: the real files, or synthetic files in the same format."""

    path: FilePath | None = None
    """Folder of the raw files. Give either `path` or `generate`."""
    generate: Generate | None = None
    """Make a synthetic corpus in this raw format, in place of `path`."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.path is None) == (self.generate is None):
            raise ValueError("give either `path` or `generate`")
        return self


class OwnTable(_Dataset):
    """Your own data: parquet, CSV or JSON lines."""

    source: Literal["table"]
    path: FilePath | None = None
    """One file for all splits. `split_column` or the section `split` divides it."""
    files: Annotated[dict[Literal["train", "val", "test"], FilePath], Field(min_length=1)] | None = None
    """One file for each split. A missing split is held out of train, with the fractions of the section `split`."""
    id_column: str | None = "id"
    """Column of the document id. None: documents are numbered from 1 (with `files`: train1, val1, ...)."""
    text_column: str = "text"
    """Column of the text."""
    labels_column: str = "labels"
    """Column of the labels: a list, or one string."""
    split_column: str | None = None
    """Column that names the split of a document."""
    group_column: str | None = None
    """Column of the group (such as the patient). All documents of a group stay in one split. None: no groups."""
    label_separator: Annotated[str, StringConstraints(min_length=1)] = ";"
    """Text between two labels, if the labels are one string."""
    mentions: FilePath | None = None
    """File with the words that people marked as the reason for a label: a table with the columns document, label and
    mention. Only mentions in training documents are read (baseline and channel `mentions`)."""

    @property
    def has_mentions(self) -> bool:
        return self.mentions is not None

    @model_validator(mode="after")
    def _one_way(self) -> OwnTable:
        if (self.path is None) == (self.files is None):
            raise ValueError("give either `path` or `files`")
        for key in ("labels_column", "id_column", "group_column", "split_column"):
            if getattr(self, key) == self.text_column:
                raise ValueError(f"{key}: {self.text_column!r} is the column of the text")
        if self.split_column is not None and (self.files or self.split.ids or self.split.table):
            raise ValueError(
                "split_column: `files`, `split.ids` or `split.table` divide the documents; give one of them"
            )
        return self


class _Mimic(_Raw):
    code_types: Literal["diagnoses", "procedures", "both"] = "both"
    """Which code tables give the labels."""
    credentialed: bool = True
    """As for every dataset, but true by default."""


class Mimic3(_Mimic):
    """MIMIC-III v1.4: the folder with NOTEEVENTS, DIAGNOSES_ICD and PROCEDURES_ICD (.csv or .csv.gz)."""

    source: Literal["mimic3"]


class Mimic4(_Mimic):
    """MIMIC-IV: the folder with note/discharge.csv.gz and hosp/{diagnoses,procedures}_icd.csv.gz."""

    source: Literal["mimic4"]
    icd_version: Literal[9, 10] = 10
    """Only codes of this ICD version become labels."""


class CodiEsp(_Dataset):
    """CodiEsp (CLEF eHealth 2020): the published zip file or its folder. It has its own split."""

    source: Literal["codiesp"]
    path: FilePath
    """Path of the zip file or its folder."""
    language: Literal["en", "es"] = "en"
    """Language of the texts: the Spanish originals, or the published machine translation into English."""
    code_types: Literal["D", "P", "both"] = "D"
    """Diagnoses, procedures or both."""

    @property
    def has_mentions(self) -> bool:
        return self.language == "es"  # the coders marked the Spanish texts


class Eurlex57k(_Dataset):
    """EURLEX57K: the folder or tar file with train/, dev/ and test/ JSON files. It has its own split."""

    source: Literal["eurlex57k"]
    path: FilePath
    """Path of the folder or tar file."""


class Xmc(_Raw):
    """A format of the extreme-classification repositories. There is no published validation split: val is held out of
    train."""

    source: Literal["xmc"]
    format: Literal["pecos", "attentionxml", "xmc_json", "libmultilabel"]
    """Format of the files in the folder."""

    @model_validator(mode="after")
    def _generated_as_pecos(self) -> Self:
        if self.generate is not None and self.format != "pecos":
            raise ValueError("generate: stand-ins are written as `format: pecos` only")
        return self


class OtherFormat(_Dataset):
    """A raw format that a module of your own reads: one file in plant/corpus/sources/."""

    source: Literal["module"]
    module: Name
    """Name of the module; plant/corpus/formats.py says what it holds."""
    path: FilePath
    """File or folder that the module reads."""
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """Further settings that the module reads, by name."""


class Subset(_Dataset):
    """A part of another dataset: fewer labels, fewer documents, a smaller train split. No raw file is read again."""

    source: Literal["subset"]
    of: Name
    """Name of the other dataset. Its text cleaning is used."""
    unlabelled: Literal["drop", "keep_test"] = "drop"
    """Documents without a label of the smaller label set: drop them in all splits, or keep them in test (choice
    C20)."""

    @model_validator(mode="after")
    def _of_the_whole(self) -> Subset:
        for key in ("cleaning", "descriptions"):
            if getattr(self, key) != Subset.model_fields[key].default:
                raise ValueError(f"{key}: that of the dataset that it is a part of is used; set it there")
        return self


Dataset = Annotated[
    OwnTable | Mimic3 | Mimic4 | CodiEsp | Eurlex57k | Xmc | OtherFormat | Subset, Field(discriminator="source")
]
