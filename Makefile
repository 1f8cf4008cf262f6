# make demo: install and see it work.   make test: everything that must hold.   make bench: timings against peers.
# make quick: lint, types, and the unit tests and properties that start no process and take under a tenth of a second each.
# make goldens: every mechanism's releases and the public names, compared with what is frozen in tests/golden.
# make soak: ten minutes of kills, full disks, broken files, faulty parties and many clients, and long tests in full size.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
JAVA   := $(or $(wildcard $(JAVA_HOME)/bin/java),$(shell command -v java))
COMMA  := ,
EXTRAS := dev$(if $(JAVA),$(COMMA)spark)
DEV    := $(VENV)/.installed-dev$(if $(JAVA),-spark)

.PHONY: demo test quick checks lint types tests spark goldens bench soak clean

demo: $(VENV)/.installed
	$(BIN)/sfumato demo

# Spark's tests are one process and one session, and mypy is one process: both run while the other tests do.
test: lint
	tests/install_chromium.sh
	tests/install_postgresql.sh
	@$(MAKE) --no-print-directory -j 3 spark types tests

quick: checks types
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" tests/unit tests/properties

checks: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

lint: checks
	$(BIN)/python -m tests.shape

types: $(DEV)
	$(BIN)/mypy

# Python keeps what it compiled even where the environment says not to: all workers would rewrite all assertions anew.
tests spark quick: export PYTHONDONTWRITEBYTECODE :=
# The workers share the cores: threads of one that wait for the other's by spinning took 35 times as long as one thread.
tests spark quick: export OMP_NUM_THREADS := 1
tests spark quick: export OPENBLAS_NUM_THREADS := 1

# Many wait for a process or a time limit of their own: three workers keep two cores busy.
tests: $(DEV)
	$(BIN)/python -m pytest -n 3 --dist worksteal --ignore tests/spark

# Shown at its end, because others write meanwhile. Without Java these tests say that they did not run.
spark: $(DEV)
	@$(BIN)/python -m pytest tests/spark > $(VENV)/spark-tests.log 2>&1; code=$$?; cat $(VENV)/spark-tests.log; exit $$code

goldens: $(DEV)
	$(BIN)/python -m tests.golden --check

bench: $(DEV)
	$(BIN)/python -m benchmarks.run

soak: $(DEV)
	$(BIN)/python -m benchmarks.soak

clean:
	rm -rf $(VENV) benchmarks/.venv sfumato-demo

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --editable '.[web]'
	touch $@

$(DEV): $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --editable '.[$(EXTRAS)]'
	touch $@
