"""`plant predict`: the labels, thresholds and reasons of new texts, from every kind of file, in every form."""

import io
import json
import os
import re
import sys
from dataclasses import replace
from html import unescape
from itertools import count, islice
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from plant.commandline import main
from plant.ground.errors import InputError
from plant.metrics.scores import read_scores
from plant.metrics.thresholds import THRESHOLD_RULES, predict
from plant.serving.inputs import Document, open_documents
from plant.serving.network import network_logits
from plant.serving.predict import LabelScore, Prediction, Reason, predictions
from plant.serving.show import as_html, as_table, highlighted
from plant.serving.system import load_system

TEXTS = ["Sign1 word3 word4, word5", "word7 Sign2 then Sign4 word8"]


@pytest.fixture
def files(tmp_path) -> dict[str, Path]:
    """The same two documents in every kind of file."""
    table = pl.DataFrame({"id": ["a", "b"], "text": TEXTS})
    paths = {kind: tmp_path / f"texts.{kind}" for kind in ("csv", "tsv", "jsonl", "parquet")}
    table.write_csv(paths["csv"])
    table.write_csv(paths["tsv"], separator="\t")
    table.write_ndjson(paths["jsonl"])
    table.write_parquet(paths["parquet"])
    return paths


@pytest.fixture
def said(capsys):
    """(arguments of `plant predict`) -> what it prints."""

    def run(*arguments: object) -> str:
        main(["predict", *map(str, arguments)])
        return capsys.readouterr().out

    return run


def rows(output: str) -> list[dict]:
    return [json.loads(line) for line in output.splitlines()]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_every_kind_of_file_gives_the_same_labels(saved, files, said, kind):
    expected = list(predictions(load_system(saved()), map(Document, "ab", TEXTS), reasons=5))
    found = rows(said(saved(), files[kind], "--format", "jsonl"))
    assert found == [json.loads(json.dumps(one.as_dict())) for one in expected]
    assert [one["id"] for one in found] == ["a", "b"]
    assert all(label["predicted"] and label["reasons"] for one in found for label in one["labels"])


@pytest.mark.parametrize("rule", THRESHOLD_RULES)
def test_each_threshold_rule_predicts_what_it_predicted_in_the_run(small_run, saved, rule):
    run, model = small_run("all"), load_system(saved("evidence"))
    stored = read_scores(run.scores("evidence"), "test")
    told = json.loads((run.scores("evidence") / "metrics.json").read_text())["threshold"]
    told = told if rule == "tuned" else told[rule]
    n_train = np.array([record["training_documents"] for record in model.labels])
    expected = predict(stored, told["value"], slope=told.get("slope", 0.0), n_train=n_train).toarray()
    documents = map(Document, stored.document_ids, run.texts())
    for place, one in enumerate(predictions(model, documents, rule=rule)):
        assert {label.label for label in one.labels} == {stored.label_names[i] for i in np.flatnonzero(expected[place])}
        assert all(label.predicted and label.score > label.threshold - 1e-5 for label in one.labels)
        assert [label.score for label in one.labels] == sorted((label.score for label in one.labels), reverse=True)
    assert expected.any()


def test_top_gives_that_many_labels_and_says_which_are_predicted(saved, files, said):
    (first, _) = rows(said(saved(), files["csv"], "--format", "jsonl", "--top", 9, "--reasons", 0))
    assert len(first["labels"]) == 9
    assert {label["predicted"] for label in first["labels"]} == {True, False}
    assert all(label["predicted"] == (label["score"] > label["threshold"]) for label in first["labels"])
    assert all(label["reasons"] == [] for label in first["labels"])


@pytest.mark.parametrize("system", ["network", "tfidf_linear", "combined", "evidence"])
def test_a_label_that_is_asked_for_has_a_score_where_only_the_best_are_kept(saved, system):
    model, document = load_system(saved(system, "few")), [Document("a", TEXTS[0])]
    (best,) = predictions(model, document, top=model.system["top"])
    (more,) = predictions(model, document, top=7)
    (asked,) = predictions(model, document, labels=model.label_names, reasons=2)
    assert len(best.labels) == 4 and len(more.labels) == 7
    assert more.labels == tuple(replace(one, reasons=()) for one in asked.labels[:7])
    assert len(asked.labels) == len(model.labels)
    if system in ("network", "tfidf_linear"):  # one channel: a score does not depend on which others are kept
        kept, all_scores = ({one.label: one.score for one in some.labels} for some in (best, asked))
        assert kept.items() <= all_scores.items()


def reasons_of(model, text, *names, most=99):
    """The reasons of some labels, in this order."""
    (one,) = predictions(model, [Document("a", text)], labels=names, reasons=most)
    found = {label.label: label.reasons for label in one.labels}
    return [found[name] for name in names]


def test_reasons_that_hardly_count_are_not_shown(saved):
    model, text = load_system(saved("tfidf_linear")), " ".join(["Sign1", *(f"word{n}" for n in range(40))])
    (added,) = model.scorers["linear"].contributions(text, [model.label_names.index("L1")])
    strongest = max(map(abs, added.values()))
    (shown,) = reasons_of(model, text, "L1")
    expected = {word: value for word, value in added.items() if abs(value) >= strongest / 20}
    assert {one.word: one.weight for one in shown} == expected
    assert 0 < len(shown) < len(added)
    assert reasons_of(model, text, "L1", most=1)[0] == shown[:1]


WORD_SYSTEMS = ("tfidf_linear", "mig_log_odds", "combined", "evidence", "slopes")


@pytest.mark.parametrize("system", WORD_SYSTEMS)
def test_a_word_adds_to_the_score_what_is_missing_without_it(saved, system):
    """Log-odds add up word by word; a linear score moves a little more, since the length of the row changes too."""
    model = load_system(saved(system))
    model.system["dense_limit"] = 0  # no rounding to fp16
    model.system["top"] = 9
    label = model.label_names.index("L1")
    with_it, without = (model.score([text]).retrieved.toarray()[0, label] for text in ("Sign1 word3", "word3"))
    reasons = {reason.word: reason.weight for reason in reasons_of(model, "Sign1 word3", "L1")[0]}
    if system == "evidence":  # what the network says moves as well
        logits = network_logits(model, ["Sign1 word3", "word3"])[:, label]
        with_it -= model.system["scalars"][model.system["channels"].index("network")] * np.subtract(*logits)
    assert max(reasons, key=lambda word: abs(reasons[word])) == "sign1"
    tolerance = 1e-5 if system == "mig_log_odds" else 0.35 * abs(reasons["sign1"])
    assert with_it - without == pytest.approx(reasons["sign1"], abs=tolerance)


@pytest.mark.parametrize("system", ["network", "static"])
def test_the_reasons_of_a_network_are_shares_of_its_attention(saved, system):
    model = load_system(saved(system))
    for reasons in reasons_of(model, "Sign1 word3, word3 and more", "L0", "L5"):
        assert sum(reason.weight for reason in reasons) == pytest.approx(1, abs=0.35)  # the rest is on punctuation
        assert {reason.word for reason in reasons} == {"sign1", "word3", "and", "more"}
        word3 = next(reason for reason in reasons if reason.word == "word3")
        assert word3.spans == ((6, 11), (13, 18))
    model.network["backbone"]["max_tokens"] = 1
    (read,) = reasons_of(model, "Sign1 word3, word3 and more", "L0")
    assert [(reason.word, reason.weight) for reason in read] == [("sign1", pytest.approx(1))]


def test_a_page_marks_the_reasons_and_loses_no_letter(saved, tmp_path, said):
    text = 'Sign1 <script>alert("x")</script> & word3'
    (tmp_path / "note.txt").write_text(text, encoding="utf-8")
    page = said(saved(), tmp_path / "note.txt", "--format", "html")
    (shown,) = re.findall(r'<p class="read" dir="auto">(.*)</p>', page)
    assert re.search(r"<mark[^>]*>Sign1</mark>", shown)
    assert unescape(re.sub(r"</?mark[^>]*>", "", shown)) == text
    assert "<script" not in page
    assert "http" not in page


def test_a_word_that_stands_a_hundred_thousand_times_is_marked_each_time_and_the_weaker_reason_gives_way():
    spans = tuple((start, start + 2) for start in range(0, 300_000, 3))
    reasons = [Reason("ab ab", 0.5, ((0, 5),)), Reason("ab", 1.0, spans)]
    assert highlighted("ab " * 100_000, reasons) == '<mark title="ab +1.00">ab</mark> ' * 100_000


def test_a_table_has_a_line_for_each_label(saved, files, said):
    header, *lines = said(saved(), files["csv"]).splitlines()
    assert header.split() == ["document", "label", "score", "threshold", "description", "reasons"]
    assert {line.split()[0] for line in lines} == {"a", "b"}
    assert any("L1" in line and "sign1 +" in line for line in lines)


def test_standard_input_is_one_text_unless_a_kind_is_named(saved, files, said, monkeypatch):
    def run(text: bytes, *arguments: str) -> list[dict]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        return rows(said(saved(), "-", "--format", "jsonl", *arguments))

    whole = run(TEXTS[0].encode())
    assert [one["id"] for one in whole] == ["-"]
    assert whole[0]["labels"] == run(files["csv"].read_bytes(), "--input", "csv")[0]["labels"]


@pytest.mark.parametrize(("form", "expected"), [("jsonl", '"id": "naïve 東"'), ("html", "<h2>naïve 東</h2>"),
                                                 ("table", r"naïve \u6771 ")])  # fmt: skip
def test_programs_get_utf_8_and_a_table_what_the_terminal_can_show(saved, tmp_path, monkeypatch, form, expected):
    (tmp_path / "naïve 東.txt").write_text(TEXTS[0], encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    main(["predict", str(saved()), str(tmp_path / "naïve 東.txt"), "--format", form])
    sys.stdout.flush()
    assert expected in sys.stdout.buffer.getvalue().decode("latin-1" if form == "table" else "utf-8")


def test_a_path_that_cannot_be_used_is_one_line(tmp_path):
    (tmp_path / "folder").mkdir()
    pl.DataFrame({"text": TEXTS, "labels": ["a;b", "a"]}).write_csv(tmp_path / "table.csv")
    with pytest.raises(SystemExit, match=r"(?s)^plant: .*folder.*: expected a path that can be used, got [^\n]*$"):
        main(["init", str(tmp_path / "table.csv"), "--out", str(tmp_path / "folder"), "--force"])
    assert [one.name for one in tmp_path.iterdir() if one.name != "table.csv"] == ["folder"]


def damaged_parquet() -> bytes:
    """A file with a whole footer and a damaged page."""
    pl.DataFrame({"text": ["secret " * 100] * 3}).write_parquet(whole := io.BytesIO())
    return whole.getvalue()[:30] + b"\xff" * 16 + whole.getvalue()[46:]


BAD = {
    "no file": (None, "expected a file, got nothing there"),
    "without the column.csv": (b"id,body\n1,hello\n", "expected a column 'text', got 2 others"),
    "without a header.csv": (b"17,a secret illness\n18,another\n", r"got 2 others\. Name it with --text-column\."),
    "a slip.csv": (b"id,Texts\n1,hello\n", "got 2 others\\. Did you mean 'Texts'"),
    "a column twice.csv": (b"text,text\nsecret,secret\n", "expected every column once, got 1 again in the header"),
    "no rows.csv": (b"id,text\n", "expected documents, got none"),
    "an empty text.csv": (b"id,text\nx,\n", "document x: expected 1 to 1,000,000 characters, got 0"),
    "two million.txt": (b"secret " * 300_000, "document two million: expected 1 to 1,000,000 characters, got"),
    "latin.txt": ("secret ä".encode("latin-1"), "expected text in UTF-8"),
    "short row.csv": (b"id,text\nx\n", "line 2: expected as many cells as the header has"),
    "semicolons.csv": (b"id;text\nx;secret\n", "line 1: expected ',' between the columns, got ';'"),
    "open quote.csv": (b'id,text\nx,"secret\n', "expected as many cells as the header has, and closed quotes"),
    "half.jsonl": (b'{"text": "\\ud83d"}\n', "line 1: expected one JSON object a line"),
    "number.jsonl": (b'{"text": 5}\n', "document 1: expected a text, got int"),
    "damaged inside.parquet": (damaged_parquet(), "expected a parquet file, got a damaged one"),
    "image.png": (b"x", r"expected a file of the kind text, csv, tsv, jsonl, parquet, got the ending '\.png'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line_that_quotes_no_text(saved, tmp_path, capsys, name):
    content, expected = BAD[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SystemExit, match=f"(?s)^plant: .*{expected}") as ended:
        main(["predict", str(saved()), str(tmp_path / name) if content else "nowhere.csv"])
    assert "secret" not in str(ended.value)
    assert capsys.readouterr().out == ""


def test_a_wrong_format_is_one_line():
    with pytest.raises(SystemExit, match="expected table, jsonl, html, got 'xml'"):
        main(["predict", "model", "x.txt", "--format", "xml"])


@pytest.mark.parametrize("arguments", [["predikt"], ["predict"], ["predict", "m", "f", "--top", "0"]])
def test_a_wrong_option_ends_with_2_and_the_usage(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "Usage: plant" in capsys.readouterr().err


def test_documents_are_read_and_labelled_a_part_at_a_time(saved):
    """An endless source: what is held at once is one part."""
    model = load_system(saved("mig_log_odds"))
    read = count()
    endless = (Document(str(next(read)), "Sign1 word2") for _ in count())
    assert len(list(islice(predictions(model, endless), 3))) == 3
    assert next(read) == model.part_size


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_the_reader_tells_how_far_it_has_come(files, kind):
    source = open_documents(str(files[kind]), kind=None, text_column="text", id_column="id")
    assert source.done() == 0
    assert len(list(source.documents)) == 2
    assert source.done() == source.total > 0


@pytest.mark.parametrize(("name", "content", "ids"), [
    ("none.csv", "text\none\ntwo\n", ("1", "2")),
    ("empty.csv", "id,text\n,one\nb,two\n", ("1", "b")),
    ("from 0.jsonl", '{"id": 0, "text": "one"}\n{"id": 1, "text": "two"}\n', ("0", "1")),
])  # fmt: skip
def test_documents_without_an_id_are_numbered(tmp_path, name, content, ids):
    (tmp_path / name).write_text(content)
    source = open_documents(str(tmp_path / name), kind=None, text_column="text", id_column="id")
    assert list(source.documents) == list(zip(ids, ("one", "two"), strict=True))


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_column_of_names_that_is_asked_for_and_not_there_is_an_error(files, kind):
    source = open_documents(str(files[kind]), kind=None, text_column="text", id_column="idd")
    with pytest.raises(InputError, match=r"expected a column 'idd', got . others\. Did you mean 'id'\?"):
        list(source.documents)


@pytest.mark.parametrize(("texts", "expected"), [
    (["fine", "x" * 1_000_001], "text 2: expected 1 to 1,000,000 characters"),
    (["fine", " \n"], "text 2: expected 1 to 1,000,000 characters"),
    ("Sign1", "texts: expected a list of texts, got one text"),  # no list of letters
])  # fmt: skip
def test_score_names_what_it_refuses(saved, texts, expected):
    with pytest.raises(InputError, match=expected):
        load_system(saved("mig_log_odds")).score(texts)


def test_help_is_one_screen_with_every_command(capsys):
    main(["--help"])
    said = capsys.readouterr().out
    assert len(said.splitlines()) <= 24
    names = ("init", "doctor", "train", "predict", "serve", "trace", "verify", "tensorboard", "export")
    assert all(f" {name} " in said for name in names)
    assert max(map(len, said.splitlines())) <= int(os.environ.get("COLUMNS", "120"))


def test_the_columns_of_a_table_stand_below_their_names_where_labels_are_long():
    labels = (LabelScore("Programming Language :: Python", 1.0, 0.5, True), LabelScore("b", 0.75, 0.5, True))
    head, *rows = as_table([Prediction("1", labels, ""), Prediction("2", (), "")])
    for row, score in zip(rows, ("1.000", "0.750"), strict=False):
        assert row.index(score) + len(score) == head.index(" score") + len(" score")
        assert row.index("0.500") + 5 == head.index("threshold") + len("threshold")
    assert rows[2].split(maxsplit=1) == ["2", "(none above the threshold)\n"]


def test_a_label_with_a_line_end_stays_in_its_row():
    rows = list(as_table([Prediction("1\n2", (LabelScore("a\nb", 1.0, 0.5, True),), "")]))
    assert len(rows) == 2 and rows[1].count("\n") == 1
    assert rows[1].split() == [r"1\n2", r"a\nb", "1.000", "0.500"]


def test_a_page_keeps_numbers_beside_words_that_run_from_right_to_left():
    word = "قلب"
    label = LabelScore("a", 1.0, 0.0, True, None, (Reason(word, 0.5, ((0, 3),)), Reason("b", 0.25, ())))
    page = "".join(as_html([Prediction("1", (label,), word)]))
    assert f"<bdi>{word}</bdi> +0.50, <bdi>b</bdi> +0.25" in page
    assert '<p class="read" dir="auto">' in page
