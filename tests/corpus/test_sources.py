"""Every raw format: small folders with known content, and the open corpora with their published counts."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest
from scipy.sparse import csr_matrix, save_npz

from plant.corpus import build, sources
from plant.corpus.documents import SCHEMA
from plant.ground import settings


def read(**dataset: object) -> tuple[pl.DataFrame, dict[str, str]]:
    documents = sources.read(settings.parse_dataset(dataset))
    assert dict(documents.frame.schema) == SCHEMA
    return documents.frame, dict(documents.descriptions)


def row(frame: pl.DataFrame, document: str) -> dict:
    return frame.row(by_predicate=pl.col("document_id") == document, named=True)


# --- MIMIC --------------------------------------------------------------------------------------


def test_mimic3_takes_discharge_summaries_and_codes_as_text(mimic3):
    frame, _ = read(source="mimic3", path=str(mimic3))
    assert frame["document_id"].to_list() == [str(100 + i) for i in range(8)]
    document = row(frame, "101")
    assert document["labels"] == ["00.66", "038.9", "411"]
    assert document["text"] == 'Line one, "quoted" xylophonist\nline two, number 1'
    assert document["group_id"] == "1"


@pytest.mark.parametrize(
    ("kind", "unused", "labels"),
    [("diagnoses", "PROCEDURES_ICD", ["038.9", "411"]), ("procedures", "DIAGNOSES_ICD", ["00.66"])],
)
def test_code_types_choose_the_tables(mimic3, kind, unused, labels):
    (mimic3 / f"{unused}.csv").unlink()
    frame, _ = read(source="mimic3", path=str(mimic3), code_types=kind)
    assert row(frame, "101")["labels"] == labels


def test_gzipped_lower_case_and_float_ids_give_the_same_documents(mimic3, tmp_path):
    frame, _ = read(source="mimic3", path=str(mimic3))
    other = tmp_path / "mimic[3]"  # polars would read the brackets as a pattern
    other.mkdir()
    for file in mimic3.iterdir():
        text = file.read_text()
        header, rest = text.split("\n", 1)
        for i in range(8):
            rest = rest.replace(f',{100 + i},"', f',{100 + i}.0,"') if "NOTE" in file.name else rest
        with gzip.open(other / f"{file.name.lower()}.gz", "wt") as packed:
            packed.write(header.lower() + "\n" + rest)
    again, _ = read(source="mimic3", path=str(other))
    assert again.equals(frame)


def test_addenda_are_joined_and_what_lacks_an_admission_or_a_note_is_counted(mimic3):
    notes, codes = mimic3 / "NOTEEVENTS.csv", mimic3 / "DIAGNOSES_ICD.csv"
    more = [
        '90,1,101,"","","","Discharge summary","Addendum","","","late words"',
        '91,1,"","","","","Discharge summary","Report","","","nobody\'s"',
    ]
    notes.write_text(notes.read_text() + "\r\n".join(more) + "\r\n")
    codes.write_text(codes.read_text() + '90,9,999,1,"4019"\r\n')
    documents = sources.read(settings.Mimic3(source="mimic3", path=str(mimic3)))
    assert row(documents.frame, "101")["text"].endswith("number 1 late words")
    assert documents.frame["document_id"].to_list() == [str(100 + i) for i in range(8)]
    assert documents.notes == {"discharge_notes": 10, "discharge_notes_without_admission": 1}
    assert documents.dropped == {"codes_without_note": ("999",)}


def test_mimic4_keeps_one_icd_version_and_strips_padding(mimic4):
    frame, titles = read(source="mimic4", path=str(mimic4))
    assert row(frame, "100")["labels"] == ["02HV33Z", "E11.9"]
    assert row(frame, "105")["labels"] == ["I10"]
    assert titles == {"I10": "Essential hypertension"}
    assert (row(frame, "107")["labels"], row(frame, "107")["text"]) == ([], "")
    nine, _ = read(source="mimic4", path=str(mimic4), icd_version=9)
    assert row(nine, "107")["labels"] == ["038.9"]


# --- CodiEsp, EURLEX57K --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "labels"), [("D", ["N44.8", "R52"]), ("P", ["BW03ZZZ"]), ("both", ["N44.8", "R52", "BW03ZZZ"])]
)
def test_codiesp_codes_become_upper_case(codiesp, kind, labels):
    frame, _ = read(source="codiesp", path=str(codiesp), code_types=kind)
    assert row(frame, "S-train-0")["labels"] == labels


def test_codiesp_zip_equals_its_folder_in_both_languages(codiesp, tmp_path):
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", codiesp)
    for language, folder in (("en", "text_files_en"), ("es", "text_files")):
        frame, _ = read(source="codiesp", path=str(codiesp), language=language)
        again, _ = read(source="codiesp", path=packed, language=language)
        assert again.equals(frame)
        assert row(frame, "S-dev-1")["text"].startswith(f"{folder} dev 1")
        assert frame["split"].to_list() == ["train", "train", "val", "val", "test", "test"]


@pytest.mark.parametrize("packing", [None, "xztar"])
def test_eurlex_joins_the_parts_of_a_law_by_newlines(eurlex, tmp_path, packing):
    path = shutil.make_archive(str(tmp_path / "packed"), packing, eurlex) if packing else str(eurlex)
    frame, titles = read(source="eurlex57k", path=path)
    expected = "Title\nHeader\nRecitals xylophonist\nArticle 1\nArticle 2\nDone at"
    assert row(frame, "dev1")["text"] == expected
    assert row(frame, "dev0")["text"] == expected.replace("Header", "")
    assert (row(frame, "dev1")["labels"], row(frame, "dev1")["split"]) == (["20", "31"], "val")
    assert sorted(frame["document_id"]) == sorted(f"{split}{i}" for split in ("train", "dev", "test") for i in (0, 1))
    assert titles == {"20": "rice"}


@pytest.mark.parametrize("source", ["codiesp", "eurlex57k"])
def test_what_some_systems_leave_beside_the_real_files_is_not_read(codiesp, eurlex, source):
    """The published zips hold __MACOSX/.../._name for every name, in bytes that are no text."""
    root = codiesp if source == "codiesp" else eurlex
    for file in [file for file in root.rglob("*") if file.is_file()]:
        litter = root / "__MACOSX" / file.relative_to(root).with_name(f"._{file.name}")
        litter.parent.mkdir(parents=True, exist_ok=True)
        litter.write_bytes(b"\x00\x05\x16\x07\xff")
    assert len(read(source=source, path=str(root))[0]) == 6


# --- XMC ----------------------------------------------------------------------------------------

TRUTH = {"train": [("first text", ["a b", "c"]), ("second", ["c"])], "test": [("third\u2028text", ["d"])]}
NAMES = ["a b", "c", "d"]


def write_xmc(folder: Path, form: str) -> None:
    folder.mkdir(exist_ok=True)
    for split, short in (("train", "trn"), ("test", "tst")):
        texts = [text for text, _ in TRUTH[split]]
        numbers = [[NAMES.index(label) for label in labels] for _, labels in TRUTH[split]]
        spaced = [" ".join(label.replace(" ", "_") for label in labels) for _, labels in TRUTH[split]]
        rows = list(zip(texts, numbers, spaced, strict=True))
        if form == "pecos":
            write_lines(folder / f"X.{short}.txt", texts)
            save_npz(folder / f"Y.{short}.npz", csr_matrix([[float(j in own) for j in range(3)] for own in numbers]))
            write_lines(folder / "output-items.txt", NAMES)
        elif form == "attentionxml":
            write_lines(folder / f"{split}_texts.txt", texts)
            write_lines(folder / f"{split}_labels.txt", spaced)
        elif form == "libmultilabel":
            write_lines(folder / f"{split}.txt", [f"{i}\t{own}\t{text}" for i, (text, _, own) in enumerate(rows)])
        else:
            entries = [
                {"uid": f"{short}{i}", "title": "", "content": text, "target_ind": own, "target_rel": [1.0]}
                for i, (text, own, _) in enumerate(rows)
            ]
            write_lines(folder / f"{short}.json.gz", map(json.dumps, entries))
            titles = [{"uid": str(i), "title": name} for i, name in enumerate(NAMES)]
            write_lines(folder / "lbl.json", map(json.dumps, titles))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    with (gzip.open if path.suffix == ".gz" else open)(path, "wt") as file:
        file.writelines(f"{line}\n" for line in lines)


@pytest.mark.parametrize("form", ["pecos", "attentionxml", "xmc_json", "libmultilabel"])
def test_the_four_xmc_formats_give_the_same_documents(tmp_path, form):
    write_xmc(tmp_path / form, form)
    frame, _ = read(source="xmc", path=str(tmp_path / form), format=form)
    got = {
        split: [(text, [label.replace("_", " ") for label in labels]) for text, labels in part.iter_rows()]
        for split in ("train", "test")
        for part in [frame.filter(pl.col("split") == split).select("text", "labels")]
    }
    assert got == TRUTH
    assert frame["document_id"].n_unique() == 3


@pytest.mark.parametrize("items", [["same", "same ", "other"], ["a", " ", "b"]])
def test_item_texts_that_repeat_or_are_blank_become_descriptions_of_numbered_labels(tmp_path, items):
    write_xmc(tmp_path, "pecos")
    write_lines(tmp_path / "output-items.txt", items)
    frame, titles = read(source="xmc", path=str(tmp_path), format="pecos")
    assert frame["labels"].to_list() == [["0", "1"], ["1"], ["2"]]
    assert titles == dict(zip("012", map(str.strip, items), strict=True))


def test_a_label_without_a_title_is_not_called_none(tmp_path):
    write_xmc(tmp_path, "xmc_json")
    titles = ["one", None, "other"]
    write_lines(tmp_path / "lbl.json", [json.dumps({"uid": str(i), "title": one}) for i, one in enumerate(titles)])
    frame, descriptions = read(source="xmc", path=str(tmp_path), format="xmc_json")
    assert frame["labels"].to_list() == [["0", "1"], ["1"], ["2"]]
    assert descriptions == {"0": "one", "1": "", "2": "other"}


# --- own data -----------------------------------------------------------------------------------


def test_parquet_csv_and_json_lines_give_the_same_documents(own, tmp_path):
    frame, _ = read(source="table", path=str(own), split_column="split", group_column="patient")
    assert frame["split"].to_list() == ["train"] * 8 + ["val"] * 2 + ["test"] * 2
    assert frame["group_id"].to_list()[:3] == ["p0", "p0", "p1"]
    table = pl.read_parquet(own)
    table.write_ndjson(tmp_path / "own.jsonl")
    joined = table.with_columns(pl.col("labels").list.join("|"))
    joined.write_csv(tmp_path / "own.csv")
    joined.write_csv(tmp_path / "own.tsv", separator="\t")
    for ending in ("jsonl", "csv", "tsv"):
        columns = {"split_column": "split", "group_column": "patient", "label_separator": "|"}
        again, _ = read(source="table", path=str(tmp_path / f"own.{ending}"), **columns)
        assert again.equals(frame), ending


def test_leading_zeros_survive_a_csv_and_one_file_a_split_names_the_split(tmp_path):
    files = {"train": str(tmp_path / "a.csv"), "test": str(tmp_path / "b.csv")}
    for path in files.values():
        Path(path).write_text("id,text,labels\n007,word,0389;042\n")
    frame, _ = read(source="table", files=files)
    assert frame.rows() == [("007", "007", "word", ["0389", "042"], split) for split in files]


# --- the open corpora ----------------------------------------------------------------------------


def statistics(folder: Path) -> dict:
    return json.loads((folder / "statistics.json").read_text())


def documents(found: dict) -> tuple[int, ...]:
    return tuple(found["splits"][name]["documents"] for name in ("train", "val", "test"))


def test_codiesp_has_its_published_counts(open_data, tmp_path):
    dataset = settings.CodiEsp(source="codiesp", path=str(open_data / "codiesp.zip"))
    build.build_corpus(dataset, tmp_path)
    found = statistics(tmp_path)
    assert documents(found) == (500, 250, 250)
    assert (found["labels"], found["splits"]["train"]["labels_present"]) == (2557, 1767)
    assert (found["splits"]["test"]["labels_present"], found["labels_in_test_absent_from_train"]) == (1143, 439)
    both = dataset.model_copy(update={"code_types": "both", "language": "es"})
    build.build_corpus(both, tmp_path)
    assert statistics(tmp_path)["labels"] == 3427
    build.build_corpus(dataset.model_copy(update={"code_types": "P"}), tmp_path)
    found = statistics(tmp_path)
    assert (documents(found), found["labels"]) == ((435, 222, 224), 870)
    assert found["dropped_documents"]["without_labels"] == 119


def test_us_bills_have_their_known_counts(open_data, tmp_path):
    folder = open_data / "usbills_112_113"
    files = {"train": "train", "val": "dev", "test": "test"}
    paths = {name: str(folder / f"{file}.parquet") for name, file in files.items()}
    build.build_corpus(settings.OwnTable(source="table", files=paths), tmp_path)
    assert documents(statistics(tmp_path)) == (18_151, 2_266, 2_310)
    assert statistics(tmp_path)["labels"] == 1041


@pytest.mark.slow
def test_eurlex57k_has_its_published_counts(open_data, tmp_path):
    path = open_data / "eurlex57k.tar.xz"
    build.build_corpus(settings.Eurlex57k(source="eurlex57k", path=str(path)), tmp_path)
    found = statistics(tmp_path)
    assert documents(found) == (45_000, 6_000, 6_000)
    assert (found["labels"], found["splits"]["train"]["labels_present"]) == (4271, 4108)
    assert pl.read_parquet(tmp_path / "labels.parquet")["description"].null_count() == 0


MEASURE = """
import resource, sys
from pathlib import Path
from plant.ground import settings
from plant.corpus.build import build_corpus
build_corpus(settings.Mimic3(source="mimic3", path=sys.argv[1], code_types="diagnoses"), Path(sys.argv[2]))
status = Path("/proc/self/status")  # since the program began; ru_maxrss counts what its parent had at the fork, too
peak = [line.split()[1] for line in status.read_text().splitlines() if "VmHWM" in line] if status.exists() else []
print(int(peak[0] if peak else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) // 1024)
"""


@pytest.mark.slow
def test_notes_are_read_as_a_stream(tmp_path):
    """A tenth of NOTEEVENTS: 200,000 notes, 400 MB of which 3% are discharge summaries, in less than 500 MB."""
    header = "ROW_ID,SUBJECT_ID,HADM_ID,CHARTDATE,CHARTTIME,STORETIME,CATEGORY,DESCRIPTION,CGID,ISERROR,TEXT\n"
    body = "\n".join([" ".join(f"word{i * 7919 % 5000}" for i in range(12))] * 24)
    with gzip.open(tmp_path / "NOTEEVENTS.csv.gz", "wt", compresslevel=1) as file:
        file.write(header)
        for i in range(200_000):
            category = "Nursing" if i % 35 else "Discharge summary"
            file.write(f'{i},{i // 35},{i // 35},,,,"{category}",,,,"{body} ""quoted"" {i}\n"\n')
    codes = [f"{i},{i},{i},1,{code}\n" for i in range(200_000 // 35 + 1) for code in ("0389", f"{4000 + i % 900}")]
    (tmp_path / "DIAGNOSES_ICD.csv").write_text("ROW_ID,SUBJECT_ID,HADM_ID,SEQ_NUM,ICD9_CODE\n" + "".join(codes))
    command = [sys.executable, "-c", MEASURE, str(tmp_path), str(tmp_path / "out")]
    environment = os.environ | {"PYTHONPATH": str(Path(build.__file__).parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert int(done.stdout) < 500
    assert sum(documents(statistics(tmp_path / "out"))) == 200_000 // 35 + 1
