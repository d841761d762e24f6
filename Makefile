# Everything starts here: `make help` lists the targets. Each target sets up what it needs, from package registries
# only, inside the clone: target/ (Rust) and .venv/ (Python). A second run starts from what the first one left.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# The steps of `test` go in order, fast failures first, also under `make -j`: cargo and pytest share the cores among themselves.
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules --no-print-directory
unexport MAKEFLAGS MFLAGS

# Any of these may be given on the command line.
CARGO ?= cargo
# make install PREFIX=/usr/local; DESTDIR is a staging folder for packagers
PREFIX ?= $(HOME)/.local
DESTDIR ?=
# ROOT judges the files that Tupelo writes. Its wheel is a pre-release for few platforms; without it, some tests do not run.
ROOT_REQUIREMENT ?= ROOT==0.1a12
# Real files are beside the project in CI, not in every clone.
TUPELO_DATA ?= $(shell cd ../shared/data 2>/dev/null && pwd)
# make demo FILE=your.root
FILE ?=
# make fuzz MINUTES=60
MINUTES ?= 6
# make docs-site LINKS=1 also requests the links to other sites
LINKS ?=
# make bench ROWS=read-flat-zstd,write-none BENCH='--events 100000'; make bench AGAINST=HEAD~10;
# make bench ROWS=remote, or ROWS=remote-all*, reads over a network with latency
ROWS ?=
BENCH ?=
AGAINST ?=

VENV := .venv
PYTHON := '$(CURDIR)/$(VENV)/bin/python'
CORE := python/python/tupelo/_core.abi3.so
# What is measured or given away is optimised across crates. Tests and the demonstration use what is built sooner.
PROFILE := $(if $(filter build install wheel bench scaling big,$(MAKECMDGOALS)),release,dev)
BUILD := target/$(PROFILE:dev=debug)
# Tests leave one line each in NAME.txt there about what they covered; the end of `make test` shows them.
TUPELO_SUMMARY := $(CURDIR)/target/test-summary

export TUPELO_DATA TUPELO_SUMMARY
# Where tests find what cargo built.
export TUPELO_BUILD := $(CURDIR)/$(BUILD)
export PATH := $(PATH):$(HOME)/.cargo/bin
export PYO3_PYTHON := $(CURDIR)/$(VENV)/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Also for the pip that maturin starts.
export PIP_QUIET := 1
# Modules are compiled when they are imported first: many never are, and half a minute and 10 % of the disk are saved.
export PIP_NO_COMPILE := 1
export PYTHONNOUSERSITE := 1
unexport PYTHONPATH PYTHONHOME CONDA_PREFIX

# Cargo chooses the features of dependencies for the packages that are named. With these, all that make builds shares
# one build of each dependency.
BUILD_OPTIONS := --locked --profile $(PROFILE) $(if $(filter dev,$(PROFILE)),--features tupelo-python/testing)
PRODUCT := $(BUILD_OPTIONS) --package tupelo-cli --package tupelo-python
MATURIN_OPTIONS := $(BUILD_OPTIONS) --manifest-path python/Cargo.toml
# Incremental compilation takes 1.2 GiB. It is on where cargo was called by hand before: else all would be compiled again.
ifeq ($(wildcard target/debug/incremental/*),)
export CARGO_INCREMENTAL := 0
endif

say = @printf '\n== %s\n'
# A command that may be silent for long: it says every 15 seconds that it still runs.
run = @.ci/progress
pip_install = $(PYTHON) -m pip install --no-input

##@ Use it

.PHONY: demo build install uninstall wheel bench scaling
demo: announce-demo package generator ## Write, read and draw a B mass peak; FILE=… draws what any ntuple holds
	@.ci/demo $(VENV)/bin/python $(VENV)/bin/tupelo $(BUILD) demo '$(FILE)'

build: command generator package ## target/release/tupelo and tupelo-generate, and the Python package in .venv

install: command ## Copy the command to PREFIX/bin, by default ~/.local/bin
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install -m 755 $(BUILD)/tupelo '$(DESTDIR)$(PREFIX)/bin/tupelo'

uninstall: ## Remove what install copied
	rm -f '$(DESTDIR)$(PREFIX)/bin/tupelo'

wheel: tools $(VENV)/.stamp-packages ## A Python wheel with the command in it, in target/wheels
	$(run) 'the wheel' $(PYTHON) -m maturin build $(MATURIN_OPTIONS)

bench: build root $(VENV)/.stamp-rivals $(if $(findstring remote,$(ROWS))$(findstring objects,$(ROWS)),servers) ## Tupelo beside its rivals, or AGAINST=a commit; ROWS=read-flat-zstd,write-* does some, ROWS=remote reads over a network, ROWS=objects does object stores, BENCH='--quick' is quick
	$(run) 'the benchmarks in Rust' $(CARGO) build $(PRODUCT) --package tupelo-bench --bin tupelo-bench
	$(PYTHON) -m bench.run $(if $(ROWS),--rows '$(ROWS)') $(if $(AGAINST),--against '$(AGAINST)') $(BENCH)

scaling: build $(VENV)/.stamp-requirements ## Costs that must not grow faster than their input, each at two sizes; ROWS=ls-*,take does some
	$(PYTHON) -m bench.scaling $(if $(ROWS),--rows '$(ROWS)')

##@ Work on it

.PHONY: check test test-engines lint format fuzz mutants nightly big test-daos clean help
test: announce-test begin lint servers test-rust build stubs docs-site test-python summary ## Every check there is: set up, lint, Rust, Python, cross-checks, docs

test-engines: package $(VENV)/.stamp-engines ## Spark, Ray, DataFusion and Ibis for real, after `make test`; Spark needs Java
	$(say) 'tests: engines'
	$(run) pytest $(PYTHON) -m pytest -c python/pyproject.toml --rootdir=. python/engines

check: lint ## What to run on each change: lint and the unit tests of Rust
	$(say) 'tests: units'
	$(run) 'cargo test' $(CARGO) test --locked --lib

lint: check-format layers imports tidy clippy types docs ## All that needs no tests: format, layers, imports, tidy, clippy, mypy, rustdoc

format: $(VENV)/.stamp-requirements ## Format Rust and Python
	$(CARGO) fmt --all
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

fuzz: tools ## Fuzz all targets in turn for MINUTES=… together; without cargo-fuzz the bounded random test
	@if [ -x fuzz/run.sh ] && $(CARGO) +nightly fuzz --version >/dev/null 2>&1; then fuzz/run.sh $(MINUTES); \
	else echo 'no cargo-fuzz on a nightly toolchain: running the bounded random test'; \
	$(CARGO) test --locked --test fuzz_smoke; fi

# What judges no check but takes long: rooms that are not mutated, and tests for which it is enough that nothing breaks.
# Some mutants take all the memory there is.
MUTANT_KIB := 8000000
SLOW_JUDGES := compression:: encoding:: _do_no_harm truncated_files damaged_lists

mutants: tools ## Take each check of the parsing rooms away in turn: a test must notice (hours; cargo install cargo-mutants)
	ulimit -v $(MUTANT_KIB); $(CARGO) mutants --package tupelo-format --test-package tupelo-format --output target/mutants --cargo-arg=--lib \
	-- -- $(SLOW_JUDGES:%=--skip %) || case $$? in 2|3) ;; *) exit 1 ;; esac
	@echo 'What the tests of tupelo-format alone missed, with the damaged and hand-made files as judges too:'
	ulimit -v $(MUTANT_KIB); $(CARGO) mutants --package tupelo-format --test-package tupelo-format,conformance --iterate --output target/mutants \
	--cargo-test-arg=--lib --cargo-test-arg=--test=bad_files --cargo-test-arg=--test=handmade --cargo-test-arg=--test=errors

nightly: tools ## Dependencies, the oldest Rust, fuzzing, sanitizers, valgrind and Miri, as far as the machine has them
	.ci/nightly

big: build root ## Write a file over 4 GiB for real and let ROOT read it (5 GB of disk)
	$(PYTHON) conformance/big_file.py

test-daos: build $(VENV)/.stamp-requirements ## Tests of DAOS on a real server, in the pool TUPELO_DAOS_POOL
	@[ -n "$${TUPELO_DAOS_POOL:-}" ] || { echo 'make test-daos needs a DAOS server, its agent on this machine, TUPELO_DAOS_POOL=POOL, in which it creates containers, and TUPELO_DAOS_LIBRARY=PATH if libdaos.so.2 is not found by name' >&2; exit 1; }
	$(say) 'tests: DAOS'
	@.ci/progress 'cargo test' $(CARGO) test --locked --lib -- daos:: objects::container::
	$(run) pytest $(PYTHON) -m pytest -c python/pyproject.toml --rootdir=. python/tests/test_daos.py

clean: ## Remove all that make made
	rm -rf target .venv demo $(CORE)

help: ## This list
	@awk 'BEGIN { FS = ":.*## " } /^##@ / { print "\n" substr($$0, 5) } \
	/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

##@ Single steps of test

.PHONY: announce-demo announce-test begin check-format layers imports tidy clippy types docs test-rust stubs docs-site test-python summary
announce-demo:
	@echo 'make demo: on two cores the first run takes about 9 minutes and 1.5 GiB of disk, later ones less than a minute'

announce-test:
	@echo 'make test: on two cores about 35 minutes, the first run 60, and 6 GiB of disk'

begin: tools root
	@rm -rf '$(TUPELO_SUMMARY)' && mkdir -p '$(TUPELO_SUMMARY)'

check-format: tools $(VENV)/.stamp-requirements ## rustfmt, ruff
	$(say) 'format: rustfmt, ruff'
	@if $(CARGO) fmt --version >/dev/null 2>&1; then $(CARGO) fmt --all --check; \
	else .ci/summary note rustfmt 'did not run: it is not installed (rustup component add rustfmt)'; fi
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .

layers: tools ## Crates and rooms use only those above them; tests add no features to dependencies
	$(say) 'layers'
	$(run) 'cargo xtask layers' $(CARGO) run --quiet --locked --package xtask -- layers
	@.ci/features '$(CARGO)' --features tupelo-python/testing --package tupelo-cli --package tupelo-python

imports: $(VENV)/.stamp-requirements ## Modules of the Python package and of bench/ import only those below them
	$(say) 'imports: import-linter'
	@PYTHONPATH=python/python .ci/progress import-linter '$(CURDIR)/$(VENV)/bin/lint-imports' --config python/pyproject.toml --no-cache --no-logo

tidy: tools ## The house rules that no compiler knows
	$(say) 'tidy'
	$(run) 'cargo xtask tidy' $(CARGO) run --quiet --locked --package xtask -- tidy

clippy: tools $(VENV)/.stamp-requirements ## Lints of Rust
	$(say) 'clippy'
	@if $(CARGO) clippy --version >/dev/null 2>&1; then \
	.ci/progress 'cargo clippy' $(CARGO) clippy --locked --workspace --all-targets -- -D warnings; \
	else .ci/summary note clippy 'did not run: it is not installed (rustup component add clippy)'; fi

types: $(VENV)/.stamp-requirements ## mypy
	$(say) 'types: mypy'
	@cd python && ../.ci/progress mypy $(PYTHON) -m mypy

docs: tools $(VENV)/.stamp-requirements ## rustdoc, every warning an error
	$(say) 'docs: rustdoc'
	@RUSTDOCFLAGS='-D warnings' .ci/progress 'cargo doc' $(CARGO) doc --locked --workspace --no-deps --lib

test-rust: tools ## Rust: unit, property, documentation and conformance tests
	$(say) 'tests: Rust'
	@rm -rf target/conformance/sealed && mkdir -p target/conformance/sealed
	@TUPELO_SEALED='$(CURDIR)/target/conformance/sealed' FUZZ_SECONDS=$${FUZZ_SECONDS:-10} .ci/progress 'cargo test' $(CARGO) test --locked

stubs: package ## The stubs say what the extension module has
	$(say) 'stubs: stubtest'
	@cd python && ../.ci/progress stubtest $(PYTHON) -m mypy.stubtest tupelo._core

# From nothing: Sphinx warns only of pages that it reads, and a second run would read no page again.
docs-site: package command $(VENV)/.stamp-requirements ## The site of docs/ with the reference of command and package, in target/docs-site; every warning an error
	$(say) 'docs: sphinx'
	@rm -rf target/docs-site
	$(run) sphinx $(PYTHON) -m sphinx --fail-on-warning --keep-going --quiet -c docs/site docs target/docs-site
	$(if $(LINKS),$(run) 'links to other sites' $(PYTHON) -m sphinx --fresh-env --quiet --builder linkcheck -c docs/site docs target/docs-links)

test-python: build standin wheel root ## Python: the package, and the judges in conformance/
	$(say) 'tests: Python'
	$(run) pytest $(PYTHON) -m pytest --numprocesses auto --durations 30 --dist loadfile --no-loadscope-reorder -c python/pyproject.toml --rootdir=. $(wildcard conformance python/tests)

summary:
	@.ci/summary show

##@ Set-up

.PHONY: tools venv servers command generator standin package root FORCE
tools: ## What the machine must have; as root on Debian, what is missing is installed
	@.ci/tools check

venv: $(VENV)/.stamp-requirements root ## .venv with all that tests need, ROOT included where it exists

servers: ## Servers of S3, GCS, Azure, HTTP and XRootD for the storage tests, a browser, and a proxy for benchmarks, in target/servers and (as root) from apt
	$(run) 'installing servers for tests' .ci/servers

command: tools ## The command
	$(run) 'the command' $(CARGO) build $(PRODUCT) --bin tupelo

generator: tools ## The program tupelo-generate, which writes simulated events
	$(run) 'the generator' $(CARGO) build $(PRODUCT) --bin tupelo-generate

standin: tools ## A stand-in for libdaos, for tests
	$(run) 'the stand-in for libdaos' $(CARGO) build --locked --profile $(PROFILE) --package daos-standin

package: tools $(VENV)/.stamp-packages ## The Python package, in .venv
	$(run) 'the Python package' .ci/package $(MATURIN_OPTIONS)

# A clone that was moved has a .venv that points to where it was.
MOVED := $(shell [ ! -e $(VENV)/.stamp-place ] || [ "$$(cat $(VENV)/.stamp-place)" = "$$PWD" ] || echo moved)

$(VENV)/.stamp-place: $(if $(MOVED),FORCE) | tools
	"$$(.ci/tools python)" -m venv --clear $(VENV)
	pwd > $@

$(VENV)/.stamp-packages: python/requirements.txt $(VENV)/.stamp-place
	$(run) 'installing packages for Python' $(pip_install) --requirement $<
	touch $@

$(VENV)/.stamp-requirements: python/requirements-dev.txt $(VENV)/.stamp-packages
	$(run) 'installing packages for tests' $(pip_install) --requirement $<
	touch $@

$(VENV)/.stamp-rivals: bench/requirements.txt $(VENV)/.stamp-requirements
	$(run) 'installing the rivals' $(pip_install) --requirement $<
	touch $@

$(VENV)/.stamp-engines: python/requirements-engines.txt $(VENV)/.stamp-packages
	$(run) 'installing Spark, Ray, DataFusion and Ibis' $(pip_install) --requirement $<
	touch $@

# By itself, so that nothing else is resolved to a pre-release. It may fail, and is then tried again the next time.
root: $(VENV)/.stamp-requirements
	@if [ "$$(cat $(VENV)/.stamp-root 2>/dev/null)" != '$(ROOT_REQUIREMENT)' ]; then \
	if .ci/progress 'installing ROOT' .ci/root $(PYTHON) '$(ROOT_REQUIREMENT)'; then echo '$(ROOT_REQUIREMENT)' > $(VENV)/.stamp-root; fi; fi
