# One command a purpose; `make` alone lists them. Nothing is needed but make and Python 3.11 or newer: all else
# is installed into .venv from the locks in envs/. An existing .venv is used as it is and brought up to the locks.

SHELL := /bin/sh
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CORES ?= all
DEMO := results/paper/demo
GRID := results/miniature/paper
PYTHONS := $(PYTHON) python3.11 python3.12 python3.13 python3 python3.14

export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYTHONNOUSERSITE := 1

.PHONY: help setup demo grid test test-slow test-slurm test-slurm-nodes bench bench-quick gpu check format reference audit picture lock clean fair-trial fair-trial-open fair-trial-minilm studies docs

help:  ## this list
	@echo "make <target>:"
	@sed -n 's/^\([a-z][a-z-]*\):.*  ## \(.*\)/  \1\t\2/p' Makefile | expand -t 18

setup: $(STAMP)  ## create .venv from envs/ (the other targets do it by themselves)

$(BIN)/python:
	@for python in $(PYTHONS); do \
	    if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	    echo "make: expected Python 3.11 or newer, got $$(python3 --version 2>&1). Install it, or name it:" \
	        "make setup PYTHON=/path/to/python3.11" >&2; exit 1; \
	fi; \
	echo "Creating $(VENV) with $$("$$found" --version)"; \
	"$$found" -m venv $(VENV) || { \
	    rm -rf $(VENV); \
	    echo "make: expected \`$$found -m venv\` to work. On Debian or Ubuntu: apt install python3-venv" >&2; exit 1; \
	}

$(STAMP): envs/dev.txt envs/cpu.txt envs/install.py pyproject.toml | $(BIN)/python
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "make: expected Python 3.11 or newer in $(VENV), got an older one. Remove $(VENV) and run again." >&2; \
	    exit 1; \
	}
	@echo "Installing the locked environment (a few minutes the first time)"
	@$(BIN)/python envs/install.py dev
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

demo: setup  ## run the default config from raw notes to tables, figures and a report
	@snakemake --cores $(CORES) all
	@echo; cat $(DEMO)/tables/ablation.md; echo
	@echo "Tables:  $(DEMO)/tables/ (csv, md, tex)"
	@echo "Figures: $(DEMO)/figures/ (pdf, png)"
	@echo "Report:  $(DEMO)/report.html"

grid: setup  ## the paper's whole grid in miniature, both versions: every dataset, backbone, ablation, table and figure
	@snakemake --cores $(CORES) all --configfile config/paper.yaml config/paper_awd_lstm.yaml config/miniature.yaml \
	    config/miniature_awd_lstm.yaml --scheduler greedy --scheduler-subsample 32
	@echo; cat $(GRID)/tables/table_6.md; echo
	@echo "Tables:  $(GRID)/tables/ (csv, md, tex)"
	@echo "Figures: $(GRID)/figures/ (pdf, png)"
	@echo "Plan:    snakemake --cores 1 plan --configfile config/paper.yaml"

test: check  ## everything below `check`, then the tests
	@pytest

test-slow: setup  ## the tests that take minutes
	@pytest -m slow

test-slurm: setup  ## the pipeline on a private Slurm (skips where Slurm is not installed)
	@pytest -m slurm -rs tests/slurm $(if $(ONLY),-k "$(ONLY)")

test-slurm-nodes: setup  ## a private Slurm of two nodes: failed and drained nodes, preemption, sacct (skips like the one above)
	@pytest -m slurm_nodes -rs tests/slurm $(if $(ONLY),-k "$(ONLY)")

bench: setup  ## what each compiled way buys beside the plain one: a table a hot spot, in results/benchmarks/
	@python tests/benchmarks/run.py

bench-quick: setup  ## the same, small: that both ways agree
	@python tests/benchmarks/run.py --quick

gpu:  ## all that only a GPU can show, in under 40 minutes, with the Python at hand (docs/how-to/gpu.md)
	@env -u PYTHONNOUSERSITE $(or $(PYTHON),python3) tests/gpu/run.py $(ARGS)

STUDIES := when_planting_helps which_labels_planting_helps what_beats_the_bar beside_published_rows what_calibration_is_worth

# Copy the pages of the studies $(1) to docs/studies/.
define publish
	@python -m plant.paper.studies.publish $(1)
	@echo "Pages:   docs/studies/*/page.md, read in docs/evidence/when-planting-helps.md"
endef

studies: setup  ## five experiments with small networks, seven and a half hours; LOCAL=mine.yaml says where MiniLM lies (docs/evidence/small-networks.md)
	@echo "About seven and a half hours of two cores (an estimate). A run that stops goes on where it was: give the command again."
	@snakemake --cores 2 $(STUDIES:%=study_%) --configfile config/studies/base.yaml \
	    $(STUDIES:%=config/studies/%.yaml) $(LOCAL)
	$(call publish,$(STUDIES))

OPEN := fair_codiesp fair_ablations_codiesp fair_starts_notes fair_words_notes fair_laws fair_laws_2000 fair_laat_laws fair_starts_laws
FAIR := fair_trial fair_curve fair_wide fair_encoders fair_multires fair_laat fair_starts_bills fair_control fair_awd fair_ablations $(OPEN)
MINILM := fair_minilm fair_starts_minilm fair_starts_minilm_laws fair_cross_2000 fair_cross_control fair_cross_five fair_cross_fast fair_output fair_values fair_output_notes fair_cross_notes fair_head_laws fair_words
FAIR_CONFIG := config/studies/base.yaml $(addprefix config/studies/,fair_trial.yaml fair_encoders.yaml fair_ablations.yaml fair_starts.yaml fair_words.yaml)

fair-trial: setup  ## does planting help a network that is trained to the end? Needs a table of US bills (config/studies/fair_trial.yaml)
	@echo "About eighteen hours of two cores (an estimate). A run that stops goes on where it was: give the command again."
	@snakemake --cores 2 $(FAIR:%=study_%) --configfile $(FAIR_CONFIG) $(LOCAL)
	$(call publish,$(FAIR))

fair-trial-open: setup  ## the part of it that downloads all that it needs: CodiEsp, and 500 and 2,000 laws of EURLEX57K
	@echo "About six hours of two cores (an estimate). A run that stops goes on where it was: give the command again."
	@snakemake --cores 2 $(OPEN:%=study_%) --configfile $(FAIR_CONFIG) $(LOCAL)
	$(call publish,$(OPEN))

fair-trial-minilm: setup  ## the part of it with a frozen MiniLM, which it downloads; LOCAL=mine.yaml says where it lies. Needs the US bills
	@echo "About five hours of two cores (an estimate). A run that stops goes on where it was: give the command again."
	@snakemake --cores 2 $(MINILM:%=study_%) --configfile $(FAIR_CONFIG) $(LOCAL)
	$(call publish,$(MINILM))

check: setup  ## lint, format, types, import direction, and that docs/reference/config.md is in step
	ruff check .
	ruff format --check --quiet .
	snakefmt --check Snakefile workflow
	snakemake --lint
	mypy
	lint-imports --no-logo
	@python -m plant.ground.reference | cmp -s - docs/reference/config.md || { \
	    echo "make: docs/reference/config.md is not what src/plant/ground/settings/ says; run make reference" >&2; exit 1; }

format: setup  ## put the code in the house's format
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

reference: setup  ## write docs/reference/config.md, the config key by key, from src/plant/ground/settings/
	python -m plant.ground.reference > docs/reference/config.md

picture: setup  ## write docs/picture.png, the picture of README.md, from the tables under docs/studies/
	python -m plant.paper.studies.picture

audit: setup  ## write docs/reference/audit.md: the paper checked against itself
	python -m plant.paper.audit.findings

docs: setup  ## the reference of the library from its docstrings, in site/ (HTML)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r envs/docs.txt
	@pdoc plant --docformat google --math -o site
	@echo "Pages:   site/plant.html"

lock: setup  ## write the locks of envs/ from envs/*.in (UPGRADE=1: newest versions)
	python envs/lock.py

clean:  ## remove caches and logs; results and .venv stay
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis logs benchmarks build src/*.egg-info
	find src tests workflow envs -name __pycache__ -type d -prune -exec rm -rf {} +
