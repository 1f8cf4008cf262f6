# make demo: install and see it work.   make test: everything that must hold.   make bench: timings against peers.
# make soak: ten minutes of kills, full disks, broken files, faulty parties and many clients.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test lint types tests bench soak clean

demo: $(VENV)/.installed
	$(BIN)/sfumato demo

test: lint types tests

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

tests: $(VENV)/.installed-dev
	tests/install_chromium.sh
	$(BIN)/python -m pytest -n 2 --dist worksteal

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.run

soak: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.soak

clean:
	rm -rf $(VENV) benchmarks/.venv sfumato-demo

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --editable '.[web]'
	touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@
