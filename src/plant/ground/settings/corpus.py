"""Section `datasets`: sources, cleaning, splits, label spaces."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from plant.ground.settings.base import Count, Fraction, Frozen, Name, Positive, Seed


class Download(Frozen):
    """A public file that a rule fetches where it is missing. Nothing under credentials is ever fetched."""

    url: str
    """Where it lies: https:// or file://; http:// or ftp:// only with `sha256`, as anybody on the way can change it."""
    path: str
    """Where it is put; a dataset that names this path, or one above or below it, waits for it."""
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Of the file as it is downloaded. None: not known to this project; what came is recorded beside the file, and
    a warning asks to record it here."""
    unpack: bool = False
    """The file is an archive (zip, tar) and `path` the folder that it is unpacked into."""
    licence: str | None = None
    """As the source names it; printed when it is fetched."""

    @model_validator(mode="after")
    def _cannot_be_changed_on_the_way(self) -> Download:
        if self.url.startswith(("http://", "ftp://")) and self.sha256 is None:
            raise ValueError("url: expected https://, or a sha256 beside an address that anybody on the way can change")
        return self


class Split(Frozen):
    """How documents are dealt to train, val and test when the source has no split of its own."""

    name: str | None = None
    """Of the published split. Scores of two splits are never compared, whatever their names (their ids differ)."""

    train: Fraction = 0.7
    """Fraction of documents."""
    val: Fraction = 0.1
    """Fraction of documents; held out of train where a source publishes no validation split (choice C18)."""
    test: Fraction = 0.2
    """Fraction of documents."""
    seed: Seed = 0
    """Of the seeded split, of `train_size` and of `val_size`."""
    ids: dict[Literal["train", "val", "test"], str] | None = None
    """Published id lists, one path a split (a file with one document id a line). Replaces the fractions."""
    table: str | None = None
    """A published feather or parquet file with the columns `_id` and `split`. Replaces the fractions."""

    @model_validator(mode="after")
    def _adds_up(self) -> Split:
        total = self.train + self.val + self.test
        if abs(total - 1) > 1e-9:
            raise ValueError(f"train + val + test must be 1, got {total:g}")
        if self.ids is not None and self.table is not None:
            raise ValueError("give either `ids` or `table`, not both")
        return self


class Cleaning(Frozen):
    """Text cleaning; part of a result: it moves the micro-F1 of a published model from 58.9 to 59.8."""

    style: Literal["edin", "caml", "raw"] = "raw"
    """edin: lower case, non-alphanumerics to spaces, free-standing numbers dropped; caml: word tokens, lower
    case, purely numeric tokens dropped (what appendix C describes, choice C31); raw: as it is."""
    max_words: Positive | None = None
    """Words kept from the start of a document (edin 4000, caml 2500)."""


class LabelSpace(Frozen):
    """Which labels are kept."""

    name: str | None = None
    """Of the published label space. Scores over two label spaces are never compared."""
    min_count: Positive = 1
    """Labels on fewer documents (over all splits, before the split) are dropped. Edin's MIMIC-IV uses 10."""
    keep: str | None = None
    """A file with one label a line: the others are dropped."""
    top: Positive | None = None
    """Keep this many labels, the most frequent ones over all documents (ties by name)."""
    train_at_least: Count = 0
    """Labels on fewer training documents are dropped (MIMIC-III-few: 1)."""
    train_at_most: Positive | None = None
    """Labels on more training documents are dropped (MIMIC-III-few: 5; choice C20)."""
    test_at_least: Count = 0
    """Labels on fewer test documents are dropped (MIMIC-III-few: 1)."""


class Generate(Frozen):
    """The synthetic corpus that stands in for raw files, whatever their form. Its indicator words favour relevance by
    presence."""

    admissions: Positive = 1500
    """Admissions in all; some patients have several."""
    codes: Positive = 150
    """Different ICD-9 codes, Zipfian in use."""
    words: Positive = 3000
    """Size of the background vocabulary (Zipfian)."""
    words_per_note: Positive = 90
    """Mean length of a discharge summary."""
    codes_per_admission: Annotated[float, Field(gt=0)] = 6.0
    """Mean number of codes of an admission."""
    indicator_rate: Fraction = 0.8
    """Probability that a code on an admission shows one of its indicator words in the text."""
    distractor_rate: Fraction = 0.3
    """Probability that a note mentions, negated, the indicator of a code that it does not have."""
    seed: Seed = 0
    """Of everything that is generated."""


class Expected(Frozen):
    """Published sizes. What comes out differently is said in the log, in statistics.json and below every table; the
    plan of the grid counts with them before there is a corpus."""

    train: Positive | None = None
    """Documents."""
    val: Positive | None = None
    """Documents."""
    test: Positive | None = None
    """Documents."""
    labels: Positive | None = None
    """Labels over all splits."""
    tokens: Positive | None = None
    """Mean tokens of a document (LLM tokenizer); for the plan only."""


class _Dataset(Frozen):
    cleaning: Cleaning = Cleaning()
    """Text cleaning, before tokens are made."""
    split: Split = Split()
    """How documents are dealt, where the source does not say."""
    labels: LabelSpace = LabelSpace()
    """Which labels are kept."""
    train_size: Positive | None = None
    """Keep this many training documents (drawn by the split's seed). None: all."""
    val_size: Positive | None = None
    """Keep this many validation documents, drawn likewise. None: all. Test is never cut."""
    draw: Literal["random", "stratified"] = "stratified"
    """How `train_size` and `val_size` draw: at random, or with every label in proportion (choice C21). Either way a
    larger draw holds every smaller one."""
    expected: Expected = Expected()
    """Published sizes of this corpus."""
    descriptions: str | None = None
    """File with descriptions of the labels, in place of those of the source: a table with the columns label and
    description (several rows a label: a title and its synonyms), or the .xml of the tabular list of ICD-10-CM."""

    category_ends: str | None = None
    """The category of a label is what stands before this in its name (ICD: "."), for the channel `categories` (choice
    C30). None: labels have no categories."""

    @property
    def sources(self) -> dict[str, str]:
        """Key of this section -> the file or folder that it names."""
        found = {
            "path": getattr(self, "path", None),
            "mentions": getattr(self, "mentions", None),
            "descriptions": self.descriptions,
            "split.table": self.split.table,
            "labels.keep": self.labels.keep,
        }
        several = {"split.ids": self.split.ids, "files": getattr(self, "files", None)}
        found |= {f"{key}.{name}": path for key, paths in several.items() for name, path in (paths or {}).items()}
        return {key: path for key, path in found.items() if path is not None}

    @property
    def lists(self) -> tuple[str, ...]:
        """The files that `split`, `labels` and `descriptions` name."""
        lists = ("split", "labels", "descriptions")
        return tuple(path for key, path in self.sources.items() if key.startswith(lists))

    @property
    def has_mentions(self) -> bool:
        """Whether the source says which words of training texts people marked as the reason of a label."""
        return False

    credentialed: bool = False
    """True: outputs are readable by the owner only, and no view of the text is made unless asked for."""


class _Raw(_Dataset):
    """A source in a published raw form: the files, or a stand-in that is generated in the same form."""

    path: str | None = None
    """Where the raw files lie."""
    generate: Generate | None = None
    """Make synthetic files in the same raw form instead of reading `path`."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.path is None) == (self.generate is None):
            raise ValueError("give either `path` or `generate`")
        return self


class Table(_Dataset):
    """Your own data: parquet, CSV or JSON lines."""

    source: Literal["table"]
    """Form of the raw files."""
    path: str | None = None
    """One file, with `split_column` or with the split section above."""
    files: dict[Literal["train", "val", "test"], str] | None = None
    """One file a split. A split that is missing is held out of train by the split section's fractions."""
    id_column: str = "id"
    """Column of the document id."""
    text_column: str = "text"
    """Column of the text."""
    labels_column: str = "labels"
    """Column of the labels: a list, or one string."""
    split_column: str | None = None
    """Column that names the split of a document."""
    group_column: str | None = None
    """Documents of one group (a patient) stay in one split. None: each document is its own group."""
    label_separator: Annotated[str, StringConstraints(min_length=1)] = ";"
    """Used where labels are one string."""
    mentions: str | None = None
    """File with what people marked in the texts as the reason of a label: a table with the columns document, label and
    mention. Those of training documents are read (baseline and channel `mentions`)."""

    @property
    def has_mentions(self) -> bool:
        return self.mentions is not None

    @model_validator(mode="after")
    def _one_way(self) -> Table:
        if (self.path is None) == (self.files is None):
            raise ValueError("give either `path` or `files`")
        return self


class Mimic3(_Raw):
    """MIMIC-III v1.4: the folder with NOTEEVENTS, DIAGNOSES_ICD and PROCEDURES_ICD (.csv or .csv.gz)."""

    source: Literal["mimic3"]
    path: str | None = None
    """Folder of the raw files."""
    code_types: Literal["diagnoses", "procedures", "both"] = "both"
    """Which code tables give the labels."""
    credentialed: bool = True


class Mimic4(_Raw):
    """MIMIC-IV: the folder that holds note/discharge.csv.gz and hosp/{diagnoses,procedures}_icd.csv.gz."""

    source: Literal["mimic4"]
    path: str | None = None
    """Folder of the raw files."""
    icd_version: Literal[9, 10] = 10
    """Codes of this ICD version only."""
    code_types: Literal["diagnoses", "procedures", "both"] = "both"
    """Which code tables give the labels."""
    credentialed: bool = True


class CodiEsp(_Dataset):
    """CodiEsp (CLEF eHealth 2020), the published zip or its folder; it has its own split."""

    source: Literal["codiesp"]
    path: str
    """The zip or its folder."""
    language: Literal["en", "es"] = "en"
    """Of the texts: Spanish, or the published machine translation."""
    code_types: Literal["D", "P", "both"] = "D"
    """Diagnoses, procedures or both."""

    @property
    def has_mentions(self) -> bool:
        return self.language == "es"  # the coders marked the Spanish texts


class Eurlex57k(_Dataset):
    """EURLEX57K: the folder (or tar) with train/, dev/ and test/ JSON files; it has its own split."""

    source: Literal["eurlex57k"]
    path: str
    """The folder or tar."""


class Xmc(_Raw):
    """The extreme-classification formats. No validation split is published: val is held out of train."""

    source: Literal["xmc"]
    path: str | None = None
    """A folder."""
    format: Literal["pecos", "attentionxml", "xmc_json", "libmultilabel"]
    """Of the files in the folder."""

    @model_validator(mode="after")
    def _generated_as_pecos(self) -> Self:
        if self.generate is not None and self.format != "pecos":
            raise ValueError("generate: stand-ins are written as `format: pecos` only")
        return self


class Subset(_Dataset):
    """Part of another dataset: other labels, fewer documents, a smaller training split. Nothing is read again."""

    source: Literal["subset"]
    of: Name
    """Name of the dataset that it is a part of; its cleaning is that dataset's."""
    unlabelled: Literal["drop", "keep_test"] = "drop"
    """Documents that have no label of the smaller label space: drop them everywhere, or keep them in test (choice
    C20)."""

    @model_validator(mode="after")
    def _of_the_whole(self) -> Subset:
        if self.descriptions is not None:
            raise ValueError("descriptions are those of the dataset that it is a part of; name the file there")
        return self


Dataset = Annotated[Table | Mimic3 | Mimic4 | CodiEsp | Eurlex57k | Xmc | Subset, Field(discriminator="source")]
