# Everything a developer does, by name. `make help` lists it.
# Needs Python 3.11+ and make; uv is brought along where it is missing.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo dev test test-quick test-frameworks fuzz kill kubernetes-rules docs check format generate manifests controlplane frameworks browser uidmap screenshots bench image-files clean

# Compiled modules are kept: without them every command and every test pays for compiling.
unexport PYTHONDONTWRITEBYTECODE

UV := $(shell command -v uv 2>/dev/null || echo .pumice/uv/bin/uv)
PY := .venv/bin/python
SYNC := $(UV) sync --locked --inexact --quiet --compile-bytecode
READY := .venv/.ready
READY_DEV := .venv/.ready-dev

help: ## List the targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1|\2/' | column -t -s '|'

demo: $(READY) ## Submit a TensorFlow job to an in-process cluster and watch it placed (5 s)
	@$(PY) examples/demo.py

dev: $(READY) ## Start an in-process cluster for kubectl
	@$(PY) -m pumice dev

test: $(READY_DEV) controlplane ## Run every test, those on a real control plane and with real frameworks included
	-@$(MAKE) --no-print-directory frameworks # where they cannot be built, their tests say why, and all others run
	-@$(MAKE) --no-print-directory --keep-going browser uidmap # likewise
	GOGC=300 $(PY) -m pytest -n 5 --dist loadfile --no-loadscope-reorder -m "not alone" # in the order of tests/support/order.py
	GOGC=300 $(PY) -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m alone

test-frameworks: $(READY_DEV) frameworks ## Run pods with the real mpirun, OpenSSH, PyTorch, TensorFlow and Ray (4 min; needs apt, and root or subordinate uids)
	$(PY) -m pytest -m frameworks

test-quick: $(READY_DEV) ## Run the tests that need neither a control plane nor much time (1 min)
	$(PY) -m pytest -n auto --maxprocesses=8 --dist worksteal --hypothesis-profile=quick -m "not controlplane and not binaries and not frameworks and not slow"

fuzz: $(READY_DEV) ## Send a million mutated reviews to a webhook, and say what became of them (6 min)
	$(PY) -m tests.fuzz

kill: $(READY_DEV) controlplane ## Kill leaders once a second under load, 200 times, and the control plane's parts (7 min)
	$(PY) -m tests.kill

kubernetes-rules: $(READY_DEV) controlplane ## Record again where the real kube-scheduler lets drawn pods run (3 min)
	$(PY) -m tests.reference

check: $(READY_DEV) ## Read-only checks: format, lint, types, layers, generated files
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	.venv/bin/lint-imports
	$(PY) tools/generate.py --check

format: $(READY_DEV) ## Format and fix what can be fixed
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

generate: $(READY_DEV) ## Write what follows from the code: CRDs, webhook rules, reference pages
	$(PY) tools/generate.py

manifests: $(READY_DEV) controlplane ## Write deploy/pumice.yaml, which installs without Helm
	$(PY) -m tools.plain_manifest --helm "$$(python3 -m tests.support.controlplane path helm)" deploy/pumice.yaml

controlplane: ## Build the real kube-apiserver, kube-scheduler, etcd, kwok, kubectl and helm (once, 7 min)
	@python3 -m tests.support.controlplane build

frameworks: ## Build images with the real OpenSSH, Open MPI, MPICH, PyTorch, TensorFlow and Ray (once, 3 min, 2.9 GiB)
	@python3 -m tests.support.images build

browser: ## Install Chromium for the tests of the page, if there is none (Debian, as root; 100 MiB)
	@python3 -m tests.support.browser

uidmap: ## Install newuidmap for tests of pods with subordinate uids, if there is none (Debian, as root)
	@python3 -m tests.support.apt newuidmap uidmap

screenshots: $(READY_DEV) browser ## Take the pictures of docs/web.md anew
	PUMICE_SCREENSHOTS=docs $(PY) -m pytest -q tests/browser/test_page.py

docs: | $(UV) ## Build the documentation as a site, into build/site (10 s)
	$(UV) run --no-project --with mkdocs-material==9.8.1 python -m mkdocs build --quiet

bench: $(READY_DEV) ## Run the benchmarks and write their JSON beside them
	$(PY) -m benchmarks

clean: ## Remove what the targets above made in this checkout
	rm -rf .venv .pumice dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(READY): pyproject.toml uv.lock | $(UV)
	@echo "setting up .venv" >&2
	@$(SYNC) --no-default-groups
	@touch $@

$(READY_DEV): pyproject.toml uv.lock | $(UV)
	@echo "setting up .venv with the development tools" >&2
	@$(SYNC)
	@touch $@ $(READY)

.pumice/uv/bin/uv:
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Pumice needs Python 3.11 or newer; python3 is $$(python3 --version 2>&1)" >&2; exit 1; }
	@echo "bringing uv along (.pumice/uv)" >&2
	@python3 -m venv .pumice/uv && .pumice/uv/bin/python -m pip install --quiet uv
