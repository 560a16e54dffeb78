"""What the config says of a variant with Stage 3. What it refuses is in tests/baselines/test_registry.py."""

from plant.ground.settings import load
from plant.paper.systems import find_roles, list_systems, system_of

CONFIG = {
    "datasets": {"small": {"source": "mimic3", "path": "x"}},
    "backbones": {"tiny": {"kind": "random"}, "words": {"kind": "words"}},
    "finetunings": {"focal": {}},
    "evidences": {"both": {"channels": ["network", "linear"]}},
    "variants": {"plain": {"finetuning": "focal"}, "more": {"finetuning": "focal", "evidence": "both"}},
    "experiments": {
        "one": {"dataset": "small", "backbone": "tiny", "variants": ["plain", "more"], "reference": "plain"}
    },
}


def test_variants_that_differ_in_stage_3_alone_share_a_network_and_no_scores():
    settings = load(CONFIG)
    plain, more = settings.variants["plain"], settings.variants["more"]
    assert plain.network == more.network == system_of(plain) == "none+focal"
    assert system_of(more) == "none+focal+both"
    assert settings.reads_network("plain")
    assert settings.reads_network("more")


def test_evidence_without_a_network_is_a_baseline_and_a_control_has_the_evidence_of_the_planted_system():
    variants = {
        "random_more": {"finetuning": "focal", "evidence": "both"}, "random": {"finetuning": "focal"},
        "words_alone": {"pretraining": "plant", "finetuning": "focal", "evidence": "words"},
        "plant": {"pretraining": "plant", "finetuning": "focal"},
        "plant_more": {"pretraining": "plant", "finetuning": "focal", "evidence": "both"},
    }  # fmt: skip
    for reference, control in (("plant", "random"), ("plant_more", "random_more")):
        one = {**CONFIG["experiments"]["one"], "variants": list(variants), "reference": reference}
        settings = load({
            **CONFIG, "pretrainings": {"plant": {}}, "variants": variants, "experiments": {"one": one},
            "evidences": {**CONFIG["evidences"], "words": {"channels": ["linear", "prior"]}},
        })  # fmt: skip
        roles = find_roles(settings, settings.experiments["one"])
        assert (roles.planted.name, roles.control.name) == (reference, control)
        assert [system.name for system in roles.baselines] == ["words_alone"]
        kinds = {system.name: system.kind for system in list_systems(settings, settings.experiments["one"])}
        assert kinds["words_alone"] == "no network"
