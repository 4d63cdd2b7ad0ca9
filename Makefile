# Everything a newcomer or CI needs. `make demo` and `make test` set themselves up first.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Named, since a later one may bring gigabytes of GPU libraries along.
TORCH := 2.13.0

# The theme's note about its future is no news about these docs.
export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test chromium test-fast coverage check format docs bench bundle molecules classes fuzz lock clean

help:  ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 12

setup: $(READY)  ## a virtual environment in .venv with the locked versions

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "mzseek needs Python 3.11 or later: set PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $(READY)

demo: setup  ## the main job on real spectra, in a few minutes; ends with where to look
	$(BIN)/mzseek demo --out demo

# The processes that tests start would otherwise compile every module again.
unexport PYTHONDONTWRITEBYTECODE

# One thread a process: two processes with two threads each would wait for one another on two cores.
test: setup chromium  ## all tests, slow and statistical ones included
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

chromium:  # for the tests of pages: installed where it can be
	@command -v chromium || command -v chromium-browser || { test "$$(id -u)" = 0 && apt-get update -qq && \
		apt-get install -qq -y chromium; } >/dev/null 2>&1 || echo "Without Chromium the tests of pages in a browser are skipped."

test-fast: setup  ## tests without the slow ones, for working on the code
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow'

coverage: setup  ## all tests, and which share of the lines of src they run
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term

check: setup  ## formatting, lint, types, import rules, docs
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/mkdocs build --strict --quiet --site-dir site

format: setup  ## rewrite files to the house style
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/ruff check --fix src tests benchmarks

docs: setup  ## serve the docs while writing them
	$(BIN)/mkdocs serve

bench: setup  ## benchmarks that need no data set; the docs name the others
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/read.py
	$(BIN)/python benchmarks/binning.py
	$(BIN)/python benchmarks/prepare.py
	$(BIN)/python benchmarks/train_step.py

# DATA is a folder with massbank.tsv.gz, massbank_more.tsv.gz, their mass lists beside them,
# molecules.tsv.gz and massbank_known.tsv.gz. WORK keeps what is made on the way.
WORK ?= bundle-work
MOLECULES = --molecules $(DATA)/molecules.tsv.gz --sources massbank,chemicals --electrospray-only \
	--known $(DATA)/massbank_known.tsv.gz
bundle: setup  ## the model bundle that comes with mzseek, from DATA=FOLDER; takes long
	$(BIN)/mzseek model build $(DATA)/massbank.tsv.gz $(DATA)/massbank_more.tsv.gz \
		$(MOLECULES) --leave-out NILU --channels fragments,analogs,intensities --augment 0 \
		--work $(WORK) --out src/mzseek/data/bundle
	$(MAKE) classes

molecules: setup  ## only the molecule database of that bundle, from DATA=FOLDER
	$(BIN)/mzseek model molecules src/mzseek/data/bundle $(MOLECULES)

classes: setup  ## only the model of compound classes of that bundle, from DATA=FOLDER
	$(BIN)/mzseek model classes src/mzseek/data/bundle --known $(DATA)/massbank_known.tsv.gz

fuzz: setup  ## damaged files for every reader, for a minute and a half
	$(BIN)/python benchmarks/fuzz --seconds 90 --findings fuzz-findings

lock: setup  ## write requirements.lock from what pyproject.toml resolves to
	$(BIN)/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable '.[dev]' torch==$(TORCH)
	{ head -n 1 requirements.lock; $(BIN)/python -m pip freeze --exclude-editable \
		| sed 's/^torch==.*/torch==$(TORCH)/'; } > requirements.lock.new
	mv requirements.lock.new requirements.lock

clean:  ## remove the environment and everything made
	rm -rf $(VENV) demo site fuzz-findings bundle-work
