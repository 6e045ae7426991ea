# The two commands: `make demo` shows the thing working, `make test` passes the tests. Both set up `.venv` first.
#
#   make install      .venv with everything, pinned by constraints.txt
#   make demo         extract a record and answer a question with the embedded model
#   make test         lint, types, tests (minutes)       make test-slow   also the long ones
#   make test-low     the suite at the low end: Python 3.10 and the oldest releases that pyproject.toml allows
#   make test-serving the plug-in of vLLM in vLLM itself, in an environment of its own (4 GB)
#   make test-serving-next   the same with the files of vLLM's latest release, of which there is no build for processors
#   make test-engines MLX-LM, llama.cpp, SGLang and others, in one of their own (5 GB)
#   make test-frameworks   LangChain and others that ask for objects, in one of their own
#   make test-browser the page of `guided serve` and the site in Chromium, which has to be installed (axe-core too where npm is)
#   make docs         the documentation site, in build/site; a broken link is an error
#   make diagrams     the diagrams of the pages, in docs/images, by Mermaid in Chromium
#   make dist         the wheel and the source archive, in dist/
#   make test-wheel   the wheel in an environment that has nothing else, outside the repository, read-only
#   make test-typing  the types of the public names, as users' own checkers see them: mypy and pyright, both strict
#   make lint         ruff and mypy only                 make bench       the benchmarks, beside peers (needs DATA)
#   make clean        remove .venv and caches
#
# PYTHON=python3.12 make install   chooses the interpreter (3.10 or newer).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
EXTRAS := hf,numba,sql,postgresql,mysql,duckdb,arrow,bench,eval,ray,serve,monitor,kg,chem,test,dev

# The matrices here are small; more threads than one only get in each other's way, and each process has a core.
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Byte code is kept: two processes collect the tests, which start others, and each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install demo test test-slow test-low test-serving test-serving-next test-engines test-frameworks test-browser docs diagrams dist test-wheel lint bench clean
.DEFAULT_GOAL := install

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python 3.10 or newer is needed: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "== setting up $(VENV): the first time takes some minutes, most of it for torch (with CUDA 3 GB more: see README)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --constraint constraints.txt --editable '.[$(EXTRAS)]'
	$(BIN)/guided warmup
	@touch $@

demo: $(STAMP)
	@$(BIN)/python examples/demo.py

lint: $(STAMP)
	@echo "== ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@echo "== mypy --strict guided"
	@$(BIN)/mypy

# The type checker takes one core: on the other the tests are collected, so that both processes find them compiled.
test: $(STAMP)
	@$(BIN)/python -m pytest --collect-only > /dev/null 2>&1 & $(MAKE) --no-print-directory lint || { code=$$?; wait; exit $$code; }; wait
	@echo "== kernels (compiled where their sources are new, about a minute)"
	@$(BIN)/guided warmup
	@echo "== pytest, by two processes"
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
	@echo "== what only kernels call, compiled by Numba by two processes (the first time takes a minute)"
	@GUIDED_KERNELS=numba $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests/unit/kernels

test-slow: lint
	@GUIDED_TEST_ALL=1 $(BIN)/python -m pytest -m "slow or not slow"

# TESTS="tests/unit/hf tests/unit/draft tests/exact" are those that a release of torch or transformers can touch.
LOW := .venv-low
LOW_PYTHON ?= python3.10
TESTS ?= tests
test-low: $(LOW)/.installed
	@$(LOW)/bin/python -m pytest $(TESTS)

$(LOW)/.installed: pyproject.toml
	$(LOW_PYTHON) -m venv $(LOW)
	grep -oE '^ +"[a-z-]+(\[[a-z]+\])?>=[0-9.]+"' pyproject.toml | tr -d ' "' | sed -E 's/\[[a-z]+\]//; s/>=/==/' \
		| sort -u > $(LOW)/lowest.txt
	$(LOW)/bin/python -m pip install --constraint $(LOW)/lowest.txt --editable '.[hf,numba,sql,test]'
	@touch $@

# In an environment of its own: the site is read from the sources, and nothing of guided is imported.
DOCS := .venv-docs
docs: $(DOCS)/.installed
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict
	@$(DOCS)/bin/python docs/site/check.py build/site

$(DOCS)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --constraint constraints.txt 'mkdocs<2' mkdocs-material 'mkdocstrings[python]'
	@touch $@

dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m pip install --quiet 'build>=1.2'
	$(BIN)/python -m build --outdir dist .

# PYTHON=python3.13 make test-wheel tries another interpreter; one wheel is for all.
WHEEL := .venv-wheel
test-wheel: dist
	rm -rf $(WHEEL)
	$(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	cp tests/installed/engine.py $(WHEEL)/
	chmod -R a-w $(WHEEL)/lib
	cd $(WHEEL) && bin/python engine.py; code=$$?; chmod -R u+w lib; exit $$code

# vLLM pins its own torch, and its tests of media, which are not used, bring builds that do not fit it.
SERVING := .venv-serving
test-serving: $(SERVING)/.installed
	@$(SERVING)/bin/python -m pytest tests/serving/vllm

$(SERVING)/.installed: pyproject.toml tests/serving/requirements.txt
	$(PYTHON) -m venv $(SERVING)
	$(SERVING)/bin/python -m pip install --requirement tests/serving/requirements.txt
	$(SERVING)/bin/python -m pip uninstall --yes torchvision torchaudio torchcodec
	$(SERVING)/bin/python -m pip install --editable '.[hf,numba]'
	@touch $@

test-serving-next: $(SERVING)/next/.installed
	@PYTHONPATH=$(CURDIR)/$(SERVING)/next $(SERVING)/bin/python -m pytest tests/serving/vllm

$(SERVING)/next/.installed: $(SERVING)/.installed tests/serving/next_vllm.py
	$(SERVING)/bin/python tests/serving/next_vllm.py $(SERVING)/next
	@touch $@

# Engines that run on a CPU: MLX-LM, llama-cpp-python (built from its source, some minutes), transformers' continuous
# batching; and the classes around the model of SGLang and LMDeploy.
ENGINES := .venv-engines
test-engines: $(ENGINES)/.installed
	@$(ENGINES)/bin/python -m pytest tests/serving tests/unit/test_coming_from.py --ignore tests/serving/vllm \
		-m "slow or not slow" -rs

$(ENGINES)/.installed: pyproject.toml tests/serving/engines.txt
	$(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/python -m pip install --requirement tests/serving/engines.txt --editable '.[hf,numba]'
	$(ENGINES)/bin/python -m pip install --no-deps sglang==0.5.23 lmdeploy==0.18.0
	@touch $@

# DATA holds maskbench-dev.jsonl.gz and tokenizers/llama3; BENCH are more options, such as BENCH="--only batch".
DATA ?= $(or $(GUIDED_DATA),../shared/data)
BENCH ?= --quick
bench: $(STAMP)
	GUIDED_DATA=$(DATA) $(BIN)/python benchmarks/run.py $(BENCH)

# Frameworks that ask for objects, in an environment of their own.
FRAMEWORKS := .venv-frameworks
test-frameworks: $(FRAMEWORKS)/.installed
	@$(FRAMEWORKS)/bin/python -m pytest tests/serving/test_frameworks.py tests/serving/test_clients.py \
		tests/unit/test_coming_from.py -rs

$(FRAMEWORKS)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/python -m pip install --constraint constraints.txt --editable '.[serve,numba,test]'
	$(FRAMEWORKS)/bin/python -m pip install 'outlines>=1.3' 'langchain-core>=1.0'
	$(FRAMEWORKS)/bin/python -m pip install 'llama-index-core>=0.14' 'instructor>=1.17' 'dspy>=3.4'
	$(FRAMEWORKS)/bin/python -m pip install 'langchain-openai>=1.0' 'llama-index-llms-openai>=0.8'
	$(FRAMEWORKS)/bin/python -m pip install 'guidance>=0.3' 'genlm-control>=0.4'
	@touch $@

# The page in a real browser: Playwright drives the Chromium that is installed, and axe-core, where npm can fetch it, looks
# for what keeps people out.  Screenshots go into the docs.
BROWSER := .browser
test-browser: $(STAMP) $(BROWSER)/.installed docs
	@PYTHONPATH=$(BROWSER)/python GUIDED_SCREENSHOTS=docs/images \
		GUIDED_AXE=$(BROWSER)/node_modules/axe-core/axe.min.js $(BIN)/python -m pytest tests/browser -rs

diagrams: $(STAMP) $(BROWSER)/.installed
	@PYTHONPATH=$(BROWSER)/python $(BIN)/python docs/site/diagrams.py $(BROWSER)/node_modules/mermaid/dist/mermaid.min.js

$(BROWSER)/.installed: Makefile
	$(BIN)/python -m pip install --target $(BROWSER)/python --upgrade 'playwright>=1.50'
	npm install --prefix $(BROWSER) --no-save 'axe-core@4' 'mermaid@11' || echo "== no axe-core: its checks are left out"
	@touch $@

# From outside: guided is a library of another environment, whose other libraries are those of .venv, and pyright
# (basedpyright, which brings its own node) believes what is annotated and infers nothing.
TYPING := .venv-typing
test-typing: $(STAMP) $(TYPING)/.installed
	@echo "== mypy --strict"
	@cd tests/typing && ../../$(TYPING)/bin/mypy --strict --config-file= --explicit-package-bases --cache-dir ../../$(TYPING)/cache uses.py
	@echo "== pyright, strict"
	@$(TYPING)/bin/basedpyright --project tests/typing --pythonpath $(TYPING)/bin/python

$(TYPING)/.installed: Makefile
	$(PYTHON) -m venv $(TYPING)
	$(TYPING)/bin/python -m pip install --constraint constraints.txt mypy 'basedpyright>=1.31'
	packages=$$($(TYPING)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
		&& ln -sfn $(CURDIR)/guided $$packages/guided \
		&& $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > $$packages/shared.pth
	@touch $@

clean:
	rm -rf $(BROWSER) $(DOCS) $(TYPING) $(VENV) $(LOW) $(SERVING) $(ENGINES) $(FRAMEWORKS) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find guided tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
