# Every target sets up .venv by itself; `make demo` and `make test` work on a fresh clone.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

# Packages are installed without byte code; each module that is imported keeps its own, so that it is compiled once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-engine test-models test-doors quick lint ruff docs portability oracle trust bench accuracy clean

help:            ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

# torch comes first and pinned: with it in place no other requirement pulls another build of it.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) torch
	$(INSTALL) -e '.[dev,peers]'
	@touch $@

demo: $(READY)   ## train, score, decode and explain on the built-in corpus; writes demo-output/report.html
	$(BIN)/trelliswork demo --out demo-output

# Kernels are compiled first: two processes that run tests would wait for each other. mypy uses one core, so it runs
# beside them; what it finds is shown after the tests.
test: ruff       ## lint, type check and run all tests but the thorough ones, which make trust has
	@mkdir -p .mypy_cache
	$(BIN)/mypy > .mypy_cache/found & types=$$!; \
	$(BIN)/trelliswork warmup --all && $(BIN)/python -m pytest -n 2 --dist worksteal $(TESTS); tests=$$?; \
	wait $$types; types=$$?; cat .mypy_cache/found; exit $$((tests ? tests : types))

# One case of each query of each structure, the layers of the package, a neural and a feature-based model from the
# command line, and the parts of a network.
QUICK := tests/contract tests/semirings tests/metrics tests/draw tests/test_layers.py tests/test_public_names.py \
	tests/nn/test_every_part.py tests/data/test_conll.py tests/data/test_jsonl.py \
	tests/cli/test_evaluate.py tests/cli/test_help.py tests/structures/test_schemes.py

quick: $(READY)  ## a representative part of the tests, in less than a minute once the kernels are compiled
	$(BIN)/python -m pytest -n 2 --dist worksteal --quick $(QUICK)

# The tests by storey of ARCHITECTURE.md: what is changed in one needs no tests of those below it.
ENGINE := tests/contract tests/structures tests/semirings tests/equations tests/hand_gradients tests/runtime tests/nn \
	tests/terms tests/draw tests/test_layers.py tests/test_public_names.py tests/test_signatures.py \
	tests/test_torch_struct.py
MODELS := tests/data tests/attributes tests/text tests/metrics tests/training tests/models
DOORS := tests/cli tests/web tests/docs tests/examples tests/package tests/faults tests/fuzz tests/house tests/trust \
	tests/typing tests/newcomers tests/test_sklearn.py tests/test_sklearn_crfsuite.py tests/test_sklearn_tutorial.py

test-engine: $(READY) ## the tests of structures, distributions and layers
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ENGINE)

test-models: $(READY) ## the tests of readers, training and models
	$(BIN)/python -m pytest -n 2 --dist worksteal $(MODELS)

test-doors: $(READY) ## the tests of commands, the server, documents and the package
	$(BIN)/python -m pytest -n 2 --dist worksteal $(DOORS)

lint: ruff       ## ruff and mypy
	$(BIN)/mypy

ruff: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

docs: $(READY)   ## build the site into docs/_build/html, strictly: links, pictures, formulas, docstrings
	$(BIN)/python docs/_site

portability: $(READY) ## make demo and make test in fresh clones, in both orders, under other processors and threads
	$(BIN)/python -m tests.portability

oracle: $(READY) ## 100,000 random cases of every structure, query, number format and backend against enumeration
	$(BIN)/python -m tests.trust.oracle

trust: $(READY)  ## fuzz, faults, oracle and long tests in full, about an hour; writes docs/results/trust.md
	-$(BIN)/python -m tests.fuzz.harness --inputs 50000 --keep
	-$(BIN)/python -m tests.faults.checking --kills 20  # of each of six commands, and as many before changes of files
	-$(BIN)/python -m tests.trust.oracle
	$(BIN)/python -m pytest -n 2 --thorough
	TRELLISWORK_FUZZ=10000 TRELLISWORK_KILLS=100 $(BIN)/python -m pytest tests/web/test_faults.py tests/web/test_teaching.py
	$(BIN)/python -m tests.trust.report

BENCHMARKS := chain segments constituency dependency top_trees ctc edit automata beam features tagging neural calls

bench: $(READY)  ## interleaved speed ratios against the peers, on a quiet machine; writes docs/results/bench-*.md
	-$(BIN)/pip install --quiet --disable-pip-version-check --no-deps supar==1.1.4  # its structures need only torch
	for each in $(BENCHMARKS); do $(BIN)/python -W ignore -m benchmarks.$$each || exit 1; done
	$(BIN)/python -m benchmarks.summary

accuracy: $(READY) ## train on the real corpora; writes docs/results/accuracy.md
	$(BIN)/python -m benchmarks.ocr
	$(BIN)/python -m benchmarks.ocr_neural
	$(BIN)/python -m benchmarks.entities --work runs/entities
	$(BIN)/python -m benchmarks.accuracy

clean:           ## remove the environment, caches and outputs
	rm -rf .venv build dist demo-output docs/_build runs .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
