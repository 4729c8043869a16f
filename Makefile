# Everything starts here, from a bare clone with python3 and pip: each target
# makes .venv and installs into it first, unless that is done already.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Which torch is installed into .venv: a version, or what the file says.
TORCH ?=
WHICH := $(if $(TORCH),torch==$(TORCH),-c .ci/constraints.txt)

# The stamp carries a checksum of what says what to install: what was installed
# for these very words is not installed again, whatever the dates of files say.
STAMP := $(VENV)/.installed-$(shell (echo $(TORCH); cat pyproject.toml \
    .ci/constraints.txt) | cksum | cut -d' ' -f1)

# uv installs what the package index lists, whatever pip is told on a machine.
UV := $(or $(shell command -v uv),build/uv/bin/uv)
export UV_SYSTEM_CERTS ?= 1
export UV_PYTHON_DOWNLOADS ?= never

CLIENTS := build/clients/.installed

.DEFAULT_GOAL := help
.PHONY: help tour test quick lint types format docs serve site-test stubs bench
.PHONY: bench-check fuzz newest newest-env package matrix workflow
.PHONY: clients families clean

# `##*` marks a command for those who work on fx.
help: ##* Print this list.
	@echo "usage: make <target>"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 15
	@echo "for those who work on fx:"
	@sed -n 's/^\([a-z-]*\):.*##\* \(.*\)/  \1\t\2/p' Makefile | expand -t 15

tour: $(STAMP) ## Trace, run and rewrite a network, write a page about it.
	@$(BIN)/python -m stages.tour

# Two processes have two cores: more threads of torch would wait for each other.
# The C library gives a network's memory back only if told when it is large.
test: lint types ## Check everything: style, types, tests, the site.
	OMP_NUM_THREADS=1 MALLOC_MMAP_THRESHOLD_=1000000 \
	    $(BIN)/python -m pytest -q -n 2 --dist loadfile

quick: lint ##* Check style, types and the tests of what changed (a minute).
	@$(BIN)/mypy
	@$(BIN)/python -m tests.quick

lint: $(STAMP) ##* Check style and layout of the code.
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --quiet --check

# Each stage has its demo.py: to mypy they are programs of their own.
# The exercises' run takes the other core, and leaves what it finds of torch to
# the tests that check the same files written.
types: $(STAMP) ##* Check the types, strictly.
	@$(BIN)/python -m stages.workspace
	@(cd exercises && ../$(BIN)/mypy --cache-dir ../.mypy_cache/filled) & \
	exercises=$$!; $(BIN)/mypy; all=$$?; wait $$exercises && exit $$all
	@for stage in stages/0*; do $(BIN)/mypy --no-error-summary $$stage/*.py || exit; done

format: $(STAMP) ##* Write the code in the one layout, mend what can be mended.
	$(BIN)/ruff check --quiet --fix-only
	$(BIN)/ruff format

# Neither -q nor -v: with them, MkDocs lets broken links pass.
docs: $(STAMP) ## Build the site into site/; a broken link ends it.
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

serve: $(STAMP) ## Show the site while you write it.
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve --no-strict --livereload

site-test: $(STAMP) ##* Try every page of the site in a browser (Chromium).
	$(BIN)/python -m pytest -q -n 2 -o python_files='browse_*.py' tests/docs/browser

stubs: $(STAMP) ##* Make exercises/ anew from fx/, after a change there.
	@$(BIN)/python -m stages.generate

bench: $(STAMP) ## Measure fx beside torch.fx.
	@$(BIN)/python -m tests.benchmarks

bench-check: $(STAMP) ##* Say what is over 10 % slower than recorded (13 min).
	@$(BIN)/python -m tests.benchmarks --compare

fuzz: $(STAMP) ##* Search for silent faults at length; then plant some.
	$(BIN)/python -m tests.reliability --long --write
	$(BIN)/python -m tests.reliability --long --plants
	$(BIN)/python -m pytest -q -m hypothesis --hypothesis-profile=fuzz

# Neither `newest` nor `matrix` needs .venv.  The former's environment is kept,
# and downloads are shared with all clones of this machine, in uv's own cache.
NOX := $(UV) tool run -q nox@2026.10.20 -f tests/versions/noxfile.py

newest: $(UV) ##* Test beside the newest torch that the index lists (5 GB).
	@$(NOX) --error-on-missing-interpreters -s newest

package: $(STAMP) $(UV) ##* Build sdist and wheel, and use the wheel elsewhere.
	@$(NOX) -s package

newest-env: $(UV) ##* Make or update the environment of `newest`.
	@$(NOX) --error-on-missing-interpreters -s newest --install-only

# ROWS="3.12/2.9 3.11/2.15" runs these: Python/torch.
matrix: $(UV) ##* Run the tests on other versions of torch and Python.
	@$(NOX) -s $(or $(foreach row,$(ROWS),'matrix($(row))'),matrix)

workflow: $(UV) ##* Check the hosted workflow, which cannot run here.
	@$(UV) tool run -q zizmor@1.32.0 --offline -q .github
	@$(UV) tool run -q check-jsonschema@0.39.0 -q \
	    --builtin-schema vendor.github-workflows .github/workflows/*.yml

# ONLY=nncf runs one, in an environment that is removed; ONLY=apart runs each so.
# Without it the slowest do not run: torchvision_marks and zoo_compiled.
clients: $(if $(ONLY),$(STAMP) $(UV),$(CLIENTS)) $(if $(filter zoo_compiled,$(ONLY)),newest-env) ##* Run other people's programs under torch.fx and fx (3 GB).
	@$(if $(ONLY),$(BIN),build/clients/bin)/python -m tests.clients $(ONLY)

families: $(UV) ##* Trace small models of transformers and other libraries (3 GB, 2 h).
	@$(UV) venv -q --clear --python $(PYTHON) build/families
	@$(UV) pip install -q --python build/families/bin/python \
	    -r tests/clients/families.txt
	@build/families/bin/python -m tests.clients.quantised
	@build/families/bin/python -m tests.clients.families
	@$(UV) venv -q --clear --python $(PYTHON) build/families
	@$(UV) pip install -q --python build/families/bin/python \
	    -r tests/clients/pictures.txt
	@build/families/bin/python -m tests.clients.pictures
	@$(UV) venv -q --clear --python $(PYTHON) build/families
	@$(UV) pip install -q --python build/families/bin/python \
	    -r tests/clients/libraries.txt
	@build/families/bin/python -m tests.clients.libraries
	@rm -rf build/families

clean: ## Remove what was made here: .venv, caches, builds.
	rm -rf $(VENV) build dist site .hypothesis
	rm -rf .mypy_cache .pytest_cache .ruff_cache exercises/.mypy_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# torchvision asks for the torch that it was built with, to the last letter.
$(CLIENTS): tests/clients/requirements.txt
	@test -x build/clients/bin/python || $(PYTHON) -m venv build/clients
	@build/clients/bin/python -m pip install -q --disable-pip-version-check \
	    -r tests/clients/requirements.txt
	@build/clients/bin/python -m pip install -q --disable-pip-version-check \
	    --no-deps torchvision==0.28.0
	@touch $@

build/uv/bin/uv:
	@$(PYTHON) -m venv build/uv
	@build/uv/bin/python -m pip install -q --disable-pip-version-check uv

$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	    "fx needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (torch is large: a minute or two)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check $(WHICH) \
	    -e '.[dev]'
	@$(BIN)/python -m stages.workspace
	@rm -f $(VENV)/.installed-*
	@touch $@
