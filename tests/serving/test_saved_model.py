"""A saved model: the pipeline's scores to the bit, in this process and in a fresh one; whole, or refused."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

from plant.evaluation.points import attention
from plant.finetuning.kept_evidence import keep_evidence
from plant.finetuning.scoring import predict_logits
from plant.ground.errors import InputError
from plant.ground.settings import Finetuning, parse_backbone
from plant.metrics.scores import read_scores
from plant.model.assemble import load_training_data, prepare, save_weights
from plant.model.features import write_features
from plant.model.transformer.backbone import make_random_backbone
from plant.serving.export import Candidate, Materials, best_candidate, export, refusal
from plant.serving.inputs import Document
from plant.serving.modeling import PlantConfig, PlantForDocuments
from plant.serving.network import backbone_record, network_logits
from plant.serving.predict import predictions
from plant.serving.system import load_system

STAGE2 = {"epochs": 1, "batch_size": 8, "accumulation": 1, "hard_negatives": 5}
SYSTEMS = ("network", "static", "evidence", "slopes", "tfidf_linear", "mig_log_odds", "combined")


def of_labels(stored, labels):
    """The scores of the run, for the labels that the model knows."""
    columns = [stored.label_names.index(label) for label in labels]
    return stored.dense[:, columns] if stored.dense is not None else stored.retrieved[:, columns].toarray()


@pytest.mark.parametrize("limits", ["all", "few"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_scores_of_a_loaded_folder_are_those_of_the_run_to_the_bit(small_run, saved, system, limits):
    run = small_run(limits)
    made = load_system(saved(system, limits)).score(run.texts())
    stored = read_scores(run.scores(system), "test")
    assert (made.dense is None) == (limits == "few")
    found = made.dense if made.dense is not None else made.retrieved.toarray()
    np.testing.assert_array_equal(found, of_labels(stored, made.label_names))
    assert np.abs(found).max() > 0


FRESH = """
import sys, numpy
from transformers import AutoModelForSequenceClassification
import plant.serving.modeling
model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1])
numpy.save(sys.argv[2], model.score([open(sys.argv[3], encoding="utf-8").read()]).dense)
"""


def test_a_fresh_process_loads_the_folder_by_the_auto_class_and_scores_alike(small_run, saved, tmp_path):
    text = small_run("all").texts()[0]
    (tmp_path / "text").write_text(text, encoding="utf-8")
    moved = shutil.copytree(saved("evidence"), tmp_path / "elsewhere")
    arguments = [moved, tmp_path / "scores.npy", tmp_path / "text"]
    run = subprocess.run(
        [sys.executable, "-c", FRESH, *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-2000:]
    here = PlantForDocuments.from_pretrained(saved("evidence")).score([text]).dense
    np.testing.assert_array_equal(np.load(tmp_path / "scores.npy"), here)


def test_the_folder_has_the_form_of_hugging_face(small_run, saved):
    folder = saved("evidence")
    config = AutoConfig.from_pretrained(folder)
    assert isinstance(config, PlantConfig)
    records = json.loads((folder / "labels.json").read_text())
    assert list(config.id2label.values()) == [record["label"] for record in records]
    tokens = AutoTokenizer.from_pretrained(folder)(small_run("all").texts()[:2], padding=True, return_tensors="pt")
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    truth = torch.ones(2, config.num_labels)
    out = model(tokens["input_ids"], tokens["attention_mask"], labels=truth)
    assert out.logits.shape == (2, config.num_labels)
    expected = torch.nn.functional.softplus(-out.logits).mean()  # binary cross-entropy where all labels are true
    torch.testing.assert_close(out.loss, expected)
    parts = {name.partition(".")[0] for name in load_file(folder / "model.safetensors")}
    assert parts == {"backbone", "attention", "head"}


def test_forward_of_the_network_gives_the_logits_that_the_run_stored(small_run, saved):
    run, model = small_run("all"), PlantForDocuments.from_pretrained(saved("network"))
    tokenizer = AutoTokenizer.from_pretrained(saved("network"))
    ids = tokenizer(run.texts()[0], add_special_tokens=False, return_tensors="pt")["input_ids"]
    logits = model(ids).logits.detach().numpy()
    stored = of_labels(read_scores(run.scores("network"), "test"), model.saved.label_names)[0]
    np.testing.assert_allclose(logits[0], stored, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("system", ["evidence", "combined"])
def test_saving_a_loaded_model_writes_the_same_files(saved, tmp_path, system):
    PlantForDocuments.from_pretrained(saved(system)).save_pretrained(tmp_path / "again")
    first, second = (
        json.loads((folder / "manifest.json").read_text())["files"] for folder in (saved(system), tmp_path / "again")
    )
    assert first == second


def test_saving_replaces_a_model_and_nothing_else(saved, tmp_path):
    model, work = PlantForDocuments.from_pretrained(saved("mig_log_odds")), tmp_path / "thesis/notes.txt"
    work.parent.mkdir()
    work.write_text("work")
    for place in (work, work.parent):
        with pytest.raises(InputError, match="expected a new or an empty folder"):
            model.save_pretrained(place)
    assert work.read_text() == "work"
    (tmp_path / "empty").mkdir()
    for _ in range(2):
        model.save_pretrained(tmp_path / "empty")
    assert load_system(tmp_path / "empty").system == model.saved.system


LOADED = """
import json, sys
from plant.commandline import main
main(["predict", sys.argv[1], sys.argv[2], "--format", "jsonl"])
print(json.dumps(sorted({"torch", "transformers", "sklearn", "numba"} & {*sys.modules})))
"""


def answer_and_libraries(folder, text, scratch) -> list:
    """What `plant predict` says of a text in a fresh process, and the heavy libraries that it imported."""
    (scratch / "a.txt").write_text(text, encoding="utf-8")
    arguments = [sys.executable, "-c", LOADED, str(folder), str(scratch / "a.txt")]
    run = subprocess.run(arguments, cwd=scratch, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.parametrize(("system", "libraries"), [
    *((words, []) for words in ("tfidf_linear", "mig_log_odds", "combined", "slopes")),
    ("network", ["torch", "transformers"]),
])  # fmt: skip
def test_a_system_of_words_is_used_without_torch_and_transformers(small_run, saved, tmp_path, system, libraries):
    text = small_run("all").texts()[0]
    answer, loaded = answer_and_libraries(saved(system), text, tmp_path)
    assert loaded == libraries
    (expected,) = predictions(load_system(saved(system)), [Document("a", text)], reasons=5)
    assert answer == json.loads(json.dumps(expected.as_dict()))


NETWORKS = {
    "LoRA on both sides": {"adapter": "lora", "architecture": "llama", "bidirectional": True},
    "special tokens, pieces": {"architecture": "bert", "chunk_tokens": 8},
    "frozen in bf16": {"adapter": "frozen", "precision": "bf16"},
    "cached features": {"adapter": "frozen", "cache_features": True},
}


WORD_NETWORK = {"kind": "word_network", "embedding_size": 8, "hidden_size": 16, "attention_heads": 2}
WORD_NETWORKS = {
    "convolution": ({"encoder": "cnn", "kernel_sizes": [3]}, {}),
    "another attention": ({"encoder": "bigru", "attention": "laat"}, {}),
    "segments": ({"encoder": "bilstm", "attention": "per_label"}, {"segment": 8}),
    "relevance in the weights": ({"encoder": "cnn"}, {"static_attention": 2.0, "static_place": "weights"}),
}  # fmt: skip


@pytest.mark.parametrize("what", [*NETWORKS, *WORD_NETWORKS])
def test_every_kind_of_network_comes_back_with_its_logits(small_run, tmp_path, what):
    run, out, backbone, recipe = small_run("all"), tmp_path / "model", tmp_path / "backbone", STAGE2
    if what in NETWORKS:
        section, tokens = parse_backbone({**run.settings["backbone"], **NETWORKS[what]}), run.tokens("tiny")
        make_random_backbone(section, run.root / "tokenizer", backbone)
    else:
        section, tokens, backbone = parse_backbone({**WORD_NETWORK, **WORD_NETWORKS[what][0]}), run.tokens("words"), ""
        recipe = {**STAGE2, **WORD_NETWORKS[what][1]}
    settings = {**run.settings, "backbone": section.model_dump(mode="json")}
    data, classifier, _ = prepare(settings, seed=0, corpus=run.corpus, tokens=tokens, backbone=backbone)
    with torch.no_grad():
        for parameter in classifier.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.rand_like(parameter) / 50)  # what was not loaded would show
    save_weights(classifier, tmp_path / "weights", head=True)
    asked, static = Finetuning.model_validate(recipe), run.relevance("words", "safetensors")
    more = {"static": static} if asked.static_attention else {}
    plain = {"finetuning": asked.model_dump(mode="json"), "network": tmp_path / "weights", **more}
    candidate, materials = run.candidate("network", **plain), Materials(run.corpus, settings, tokens, backbone)
    export(candidate, materials, out)
    if section.cache_features:
        write_features(classifier.backbone, data.corpus, tmp_path / "features", device=torch.device("cpu"))
        data = load_training_data(run.corpus, tokens.parent, tmp_path / "features")
    data = keep_evidence(data, classifier, asked, static=static, residual=None, whole=True)
    expected = predict_logits(classifier, data.corpus, data.corpus.documents("test"), batch_size=8)
    loaded = load_system(out)
    made = loaded.score(run.texts()).dense
    tolerance = 2e-3 if section.cache_features else 0  # cached in batches of other documents
    np.testing.assert_allclose(made, expected.astype(np.float16).astype(np.float32), rtol=tolerance, atol=tolerance)
    asked, shares = np.array([0, 1]), []
    network_logits(loaded, loaded.clean(run.texts()[:1]), lambda *seen: shares.append(seen[-1](asked)))
    attended = attention(classifier, data.corpus, data.corpus.documents("test")[0], asked)
    np.testing.assert_allclose(shares[0], attended, rtol=1e-5 + tolerance, atol=tolerance)  # what `plant predict` shows
    if what == "convolution":  # as for every network over words
        assert answer_and_libraries(out, run.texts()[0], tmp_path)[1] == ["torch"]


def other_format(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))


REFUSED = {
    "missing": (lambda folder: (folder / "thresholds.json").unlink(), "thresholds.json: expected the file"),
    "no manifest": (lambda folder: (folder / "manifest.json").unlink(), "no manifest.json in it"),
    "pickle": (lambda folder: (folder / "pytorch_model.bin").write_bytes(b"\x80\x04."), "no pickle"),
    "other version": (other_format, "format 99"),
    "changed": (lambda folder: (folder / "model.safetensors").write_bytes(b"1234"), "safetensors: .* SHA-256"),
    "no folder": (shutil.rmtree, "no folder there"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_folder_that_is_not_whole_is_refused_with_one_error(saved, tmp_path, what):
    folder = shutil.copytree(saved("network"), tmp_path / "model")
    damage, expected = REFUSED[what]
    damage(folder)
    with pytest.raises(InputError, match=expected):
        PlantForDocuments.from_pretrained(folder)


CREDENTIALED = {
    "evidence": "word scores", "tfidf_linear": "word scores", "network": "a vocabulary that was trained on the notes",
}  # fmt: skip


@pytest.mark.parametrize("system", CREDENTIALED)
def test_words_of_credentialed_notes_are_saved_only_if_asked_for(small_run, tmp_path, system):
    run, out = small_run("all"), tmp_path / "model"
    with pytest.raises(InputError, match=f"{CREDENTIALED[system]}.*show_credentialed"):
        export(run.candidate(system), run.materials(private=True), out)
    assert not out.exists()
    shown = {**run.settings["evaluation"], "show_credentialed": True}
    export(run.candidate(system), run.materials(private=True, evaluation=shown), out)
    assert "data use agreement" in (out / "README.md").read_text()


def test_relevance_of_credentialed_notes_is_words_too(small_run, tmp_path):
    """The best tokens of a label of one document are those of that document alone."""
    run = small_run("all")
    backbone = {**run.settings["backbone"], "kind": "pretrained"}  # its vocabulary is not of the notes
    assert refusal(run.candidate("network"), run.materials(private=True, backbone=backbone)) is None
    with pytest.raises(InputError, match=r"the relevance of words in static attention.*show_credentialed"):
        export(run.candidate("static"), run.materials(private=True, backbone=backbone), tmp_path / "model")
    shown = {**run.settings["evaluation"], "show_credentialed": True}
    assert refusal(run.candidate("static"), run.materials(private=True, backbone=backbone, evaluation=shown)) is None


UNSAVED = {
    "descriptions": ("evidence", {"evidence": {"channels": ["network", "descriptions"]}}),
    "a shortlist": ("network", {"finetuning": {"shortlist": 4, "shortlist_above": 5}}),
    "a residual": ("network", {"finetuning": {"residual": 10}}),
}


@pytest.mark.parametrize("what", UNSAVED)
def test_what_needs_the_training_corpus_is_refused(small_run, tmp_path, what):
    system, changes = UNSAVED[what]
    run = small_run("all")
    with pytest.raises(InputError, match=f"got .*{what}"):
        export(run.candidate(system, **changes), run.materials(), tmp_path / "m")


@pytest.mark.parametrize(("section", "kind", "got"), [
    ({"quantization": "nf4", "adapter": "lora"}, "llama", "quantization: nf4"),
    ({}, "of_its_own", ".* the model type 'of_its_own'"),
])  # fmt: skip
def test_a_backbone_that_no_folder_can_give_back_is_refused(saved, section, kind, got):
    model = load_system(saved("network"))
    model.classifier.backbone.model.config.model_type = kind
    with pytest.raises(InputError, match=f"got {got}"):
        backbone_record(model.classifier, {**model.network["backbone"], **section})


def test_the_best_run_on_validation_that_can_be_saved_is_taken_and_the_better_ones_are_told(tmp_path, monkeypatch):
    runs, refused = [], InputError("here", expected="words", got="the channel mentions", fix="Take another.")
    for seed, value in enumerate([0.2, 0.5, 0.5, 0.1]):
        folder = tmp_path / str(seed)
        folder.mkdir()
        (folder / "metrics.json").write_text(json.dumps({"threshold": {"value_on_val": value}}))
        runs.append(Candidate(f"plant_{seed}", folder, seed))

    def best(*seeds):
        monkeypatch.setattr("plant.serving.export.refusal", lambda run, _: refused if run.seed in seeds else None)
        return best_candidate(runs, None)

    assert best() == (runs[1], ())
    chosen, passed_over = best(1, 2)
    assert chosen.seed == 0
    told = "is better on validation (0.500), and cannot be saved: the channel mentions."
    assert passed_over == (f"`plant_1` {told}", f"`plant_2` {told}")
    with pytest.raises(InputError, match="got the channel mentions"):
        best(0, 1, 2, 3)


def test_the_card_tells_the_metrics_of_the_run(small_run, saved):
    run, card = small_run("all"), (saved("evidence") / "README.md").read_text()
    metrics = json.loads((run.scores("evidence") / "metrics.json").read_text())
    assert f"| micro_f1 | {metrics['micro_f1']:.3f} |" in card
    assert "30 training, 15 validation and 15 test documents" in card
    assert "Licence of the data: CC0." in card
    thresholds = json.loads((saved("evidence") / "thresholds.json").read_text())
    assert thresholds["value"] == metrics["threshold"]["value"]
