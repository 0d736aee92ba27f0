# Every target sets up what it needs: a virtual environment and the locked dependencies. Only Python 3.11+ is assumed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
JOBS   ?= 2

.PHONY: run story test test-adapters test-clients test-real browser check format bench soak lock clean help

help:            ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

KERNEL := hatch_build.py $(wildcard src/kernel/*)

$(READY): requirements-dev.lock pyproject.toml $(KERNEL)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "toolcrib needs Python 3.11 or newer; set PYTHON=/path/to/python3"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -c 'from toolcrib.kernel import account; print(f"toolcrib is installed, {account()}")'
	@touch $@

run: $(READY)    ## serve 250 real tools on loopback, with a configuration to paste into a client
	@$(BIN)/python examples/gateway.py

story: $(READY)  ## tell the story in the terminal: a scripted model and 236 real tools
	@$(BIN)/python examples/story.py

test: check browser ## lint, types and the whole suite, the adapters with their frameworks included
	$(BIN)/python -X dev -W error -m pytest -n $(JOBS) -q
	TOOLCRIB_KERNEL=off $(BIN)/python -X dev -W error -m pytest -n $(JOBS) -q $(WITH_KERNEL)
	@$(MAKE) --no-print-directory test-adapters

# What the compiled kernel has a part in: tested with it and without it.
WITH_KERNEL := $(addprefix tests/,retrieval intake/test_screening.py sources/test_live.py test_assembly.py test_cards.py test_discovery.py test_kernel.py \
	test_kernel_messages.py test_activity.py execution/test_errands.py gateway sources/test_json_rpc.py sources/test_link.py)

# The console is tested in a real browser. Debian and its like install one where `make` may; elsewhere have one on the path.
browser:         ## Chromium, for the tests of the console
	@for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do \
		command -v $$name > /dev/null && exit 0; \
	done; \
	if command -v apt-get > /dev/null && test "$$(id -u)" = 0; then \
		apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null; \
	else \
		echo "no Chromium on the path: the tests of the console in a browser are left out"; \
	fi || echo "Chromium could not be installed: the tests of the console in a browser are left out"

test-adapters: $(VENV)-adapters/.ready ## the adapters and their examples, with the real frameworks
	$(VENV)-adapters/bin/basedpyright --pythonpath $(VENV)-adapters/bin/python $(FRAMEWORKS)
	$(VENV)-adapters/bin/python -m pytest -q tests/adapters

test-clients: $(VENV)-clients/.ready ## FastMCP's client in front of the gateway (the SDK's, the Inspector and raw sockets are in `make test`)
	unshare --user --map-root-user --net sh -c 'ip link set lo up; exec "$$@"' sh \
		$(VENV)-clients/bin/python -m pytest -q -W default tests/in_front/test_fastmcp.py

$(VENV)-clients/.ready: requirements-dev.lock pyproject.toml
	@test -x $(VENV)-clients/bin/python || $(PYTHON) -m venv $(VENV)-clients
	$(VENV)-clients/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(VENV)-clients/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(VENV)-clients/bin/python -m pip install --quiet --disable-pip-version-check 'fastmcp==4.1.2'
	@touch $@

test-real: $(READY) ## 25 real servers behind one gateway, five of them failing; installs them first (needs npm's and PyPI's registries)
	$(BIN)/python -m tests.chaos.install $(REAL)
	unshare --user --map-root-user --net sh -c 'ip link set lo up; exec "$$@"' sh $(BIN)/python -m tests.chaos.real_servers --root $(REAL)

REAL ?= .make/real-servers

FRAMEWORKS := $(addprefix src/toolcrib/adapters/,langchain.py openai_agents.py pydantic_ai.py) \
	$(addprefix examples/,langchain_agent.py openai_agents.py pydantic_ai_agent.py)

$(VENV)-adapters/.ready: requirements-adapters.lock pyproject.toml
	@test -x $(VENV)-adapters/bin/python || $(PYTHON) -m venv $(VENV)-adapters
	$(VENV)-adapters/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-adapters.lock
	$(VENV)-adapters/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

check: $(READY)  ## lint and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --pythonversion $$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')

format: $(READY) ## put the sources into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)-bench/.ready  ## ratios against the original's way and against peers, in one run
	$(VENV)-bench/bin/python -m bench

soak: $(READY)   ## a minute of load on the gateway: 200 clients over HTTP
	$(BIN)/python -m bench.soak

# Peers that the package index does not have, or cannot install beside the others, are left out of the run.
SUPERGATEWAY := 4.0.0
$(VENV)-bench/.ready: requirements-bench.lock requirements-bench-proxy.lock pyproject.toml
	@test -x $(VENV)-bench/bin/python || $(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	$(VENV)-bench/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@test -x $(VENV)-bench-proxy/bin/python || $(PYTHON) -m venv $(VENV)-bench-proxy
	-$(VENV)-bench-proxy/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench-proxy.lock
	-npm install --prefix .make/supergateway --no-audit --no-fund --ignore-scripts supergateway@$(SUPERGATEWAY)
	@touch $@

lock:            ## resolve the locked requirements anew (needs uv)
	uv pip compile --no-strip-extras --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q pyproject.toml -o requirements.lock
	uv pip compile --no-strip-extras --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q pyproject.toml --group dev -o requirements-dev.lock
	uv pip compile --no-strip-extras --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q pyproject.toml --group adapters -o requirements-adapters.lock
	uv pip compile --no-strip-extras --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q pyproject.toml --group bench -o requirements-bench.lock
	uv pip compile --no-strip-extras --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q --group pyproject.toml:bench-proxy -o requirements-bench-proxy.lock

clean:           ## remove everything that the targets made
	rm -rf $(VENV) $(VENV)-adapters $(VENV)-clients $(VENV)-bench $(VENV)-bench-proxy .make
	rm -rf .ruff_cache .hypothesis .coverage dist build src/toolcrib/_kernel.*.so*
