# The commands of this project. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CARGO ?= cargo
PYTHON ?= python3
TARGET := $(or $(CARGO_TARGET_DIR),target)
REPORT ?= out/report
# Where `make install` puts the C library; DESTDIR stages it for a package.
PREFIX ?= /usr/local
LIBRARIES ?= $(TARGET)/release
# Seconds for each fuzz target and cases for each property of `make soak`.
FUZZ_S ?= 600
TORTURE_ROUNDS ?= 100
PROPTEST_CASES_SOAK ?= 100000
RTL_CYCLES_SOAK ?= 10000000
# How often each end of a pool is killed.
KILLS_SOAK ?= 50
# How often a pager is killed, and seconds for which others lie to one.
PAGER_KILLS_SOAK ?= 1000
ATTACK_S_SOAK ?= 3600
# Calls of a rack's sockets beside the kernel's, with each of two sizes of ring: 10^7 in all. And
# connections whose other end lies.
RACK_CALLS_SOAK ?= 5000000
LIES_SOAK ?= 2000
# Operations of each pool with each count of machine threads, in Rust and in C, and in Python: 10^8
# in all, on 20, 4 and 5 pools with 4 counts.
THREAD_OPERATIONS_SOAK ?= 1000000
PYTHON_THREAD_OPERATIONS_SOAK ?= 200000
# What makes the site of the documentation.
MDBOOK_VERSION := 0.5.4
MDBOOK := .tools/mdbook-$(MDBOOK_VERSION)/bin/mdbook
FUZZ_MANIFEST := $(wildcard fuzz/Cargo.toml)
PURE_CRATES := -p ethermem-units -p ethermem-wire -p ethermem-edm -p ethermem-offload \
    -p ethermem-clio -p ethermem-placement -p ethermem-cxl -p ethermem-dfabric

.PHONY: help
help: ## List the commands
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' Makefile | \
	    while IFS='|' read -r name what; do printf '  make %-12s %s\n' "$$name" "$$what"; done

.PHONY: build
build: ## Build the release binary
	$(CARGO) build --release --locked -p ethermem-cli

.PHONY: capi
capi: ## Build the C library
	$(CARGO) build --release --locked -p ethermem-capi

# It knows `local:`, `udp:`, `ring:`, `node:`; `make install-built LIBRARIES=FOLDER` installs it.
.PHONY: capi-light
capi-light: ## Build the C library for memory nodes alone, without the simulator
	$(CARGO) build --release --locked -p ethermem-capi --lib --no-default-features \
	    --target-dir $(TARGET)/light

.PHONY: install
install: capi ## Install the C library, its header and its pkg-config file: PREFIX, DESTDIR
	@$(MAKE) install-built

# Of libraries that are there: LIBRARIES names their folder.
.PHONY: install-built
install-built: VERSION = $(shell sed -n \
    '/^\[workspace.package\]/,/^$$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
install-built: LIB = $(DESTDIR)$(PREFIX)/lib
install-built:
	install -d $(LIB)/pkgconfig $(DESTDIR)$(PREFIX)/include
	install -m 644 crates/capi/include/*.h $(DESTDIR)$(PREFIX)/include
	install -m 644 $(LIBRARIES)/libethermem_capi.a $(LIB)/libethermem.a
	install -m 755 $(LIBRARIES)/libethermem_capi.so $(LIB)/libethermem.so.$(VERSION)
	ln -sf libethermem.so.$(VERSION) $(LIB)/libethermem.so.$(firstword $(subst ., ,$(VERSION)))
	ln -sf libethermem.so.$(VERSION) $(LIB)/libethermem.so
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' crates/capi/ethermem.pc.in \
	    > $(LIB)/pkgconfig/ethermem.pc

.PHONY: install-command
install-command: build ## Install the command, its manual pages and its completions: PREFIX, DESTDIR
	@$(MAKE) install-command-built

# Of a command that is there: COMMAND names it.
.PHONY: install-command-built
install-command-built: COMMAND ?= $(TARGET)/release/ethermem
install-command-built: SHARE = $(DESTDIR)$(PREFIX)/share
install-command-built:
	install -d $(DESTDIR)$(PREFIX)/bin $(SHARE)/bash-completion/completions \
	    $(SHARE)/fish/vendor_completions.d $(SHARE)/zsh/site-functions
	install -m 755 $(COMMAND) $(DESTDIR)$(PREFIX)/bin/ethermem
	$(COMMAND) man --out $(SHARE)/man/man1
	$(COMMAND) completions bash > $(SHARE)/bash-completion/completions/ethermem
	$(COMMAND) completions fish > $(SHARE)/fish/vendor_completions.d/ethermem.fish
	$(COMMAND) completions zsh > $(SHARE)/zsh/site-functions/_ethermem

# Whoever runs it waits for the build, so it is quick, and without what serves other machines.
.PHONY: run
run: ## Run the main job: every workload on EDM and its references, into out/report
	$(CARGO) build --profile quick --locked -p ethermem-cli --no-default-features
	$(TARGET)/quick/ethermem report --out $(REPORT)

.PHONY: figure8
figure8: build ## Run figure 8 of EDM's paper, as we measure and as published, into out/figure8*
	for part in figure8a figure8b; do \
	    $(TARGET)/release/ethermem compare scenarios/$$part.toml --out out/$$part; \
	    $(TARGET)/release/ethermem compare scenarios/$$part.toml --method published \
	        --out out/$$part-published; \
	done

.PHONY: test
test: ## Run all tests, or the suites named in SUITES; the last line counts them
	@$(PYTHON) scripts/run_tests.py $(if $(LINT_LOG),--lint-log $(LINT_LOG)) $(SUITES)

# cargo-mutants names the mutants: cargo install cargo-mutants --locked. Those of every crate, which
# takes hours, are asked for by MUTANTS=.
MUTANTS ?= --crate udp
.PHONY: mutants
mutants: ## Make mutants of the code that decides something, and see the tests catch them
	$(PYTHON) -B scripts/script_mutants.py
	@$(PYTHON) scripts/python_env.py mutants python -B scripts/mutants.py $(MUTANTS)
	@$(PYTHON) -B scripts/mutants_report.py

.PHONY: model
model: ## Check the rules of waiting and the rings of DFabric in every order of threads
	$(CARGO) test --quiet --locked --manifest-path model/Cargo.toml

.PHONY: test-apps
test-apps: ## Run every application of workloads/apps that is installed, and check its answer
	APPS=all $(PYTHON) -B -m unittest discover -s scripts -p "test_apps.py" -v

.PHONY: rtl
rtl: ## Run the RTL's tests, its equivalence with the Rust model and its proofs
	@$(PYTHON) scripts/python_env.py rtl python -m pytest -n 2 rtl

.PHONY: rtl-registers
rtl-registers: ## Write the C header and the page of the RTL's registers anew
	@PYTHONPATH=rtl $(PYTHON) scripts/python_env.py rtl python -m flow.registers

.PHONY: rtl-lists
rtl-lists: ## Write the file lists of the RTL's tops anew: plain, FuseSoC, Bender
	@PYTHONPATH=rtl $(PYTHON) scripts/python_env.py rtl python -m flow.lists

.PHONY: rtl-pictures
rtl-pictures: ## Draw one read and one write anew, from the waves of the compiled hardware
	@PYTHONPATH=rtl $(PYTHON) scripts/python_env.py synth python -m flow.picture

.PHONY: rtl-coverage
rtl-coverage: ## Run the RTL's benches on models that count, and say what of each module they reach
	@PYTHONPATH=rtl $(PYTHON) scripts/python_env.py rtl python -m flow.coverage

.PHONY: rtl-mutate
rtl-mutate: ## Corrupt each module of the RTL and see its tests fail
	@PYTHONPATH=rtl $(PYTHON) scripts/python_env.py rtl python -m flow.mutate

.PHONY: synth
synth: ## Synthesise the RTL: cells, levels, FPGAs, and what 512 ports would take
	@PYTHONPATH=rtl $(PYTHON) scripts/python_env.py synth python -m flow.synth
	@PYTHONPATH=rtl $(PYTHON) scripts/python_env.py synth python -m flow.synth_figure

.PHONY: bench
bench: ## Measure every target, then the parts by themselves
	$(CARGO) bench --locked -p ethermem-sim --bench targets
	$(CARGO) bench --locked -p ethermem-sim --bench micro
	$(CARGO) bench --locked -p ethermem-cli --bench sweep
	$(CARGO) bench --locked -p ethermem-clio --bench flat
	$(CARGO) bench --locked -p ethermem-clio --bench allocation
	$(CARGO) bench --locked -p ethermem-node --bench flat
	$(CARGO) bench --locked -p ethermem-node --bench neighbour
	$(CARGO) bench --locked -p ethermem-bench --bench overhead
	$(CARGO) bench --locked -p ethermem-pager --bench pages

.PHONY: bench-floors
bench-floors: ## Measure what this machine's network costs, and peers of the memory node
	$(CARGO) build --release --locked -p ethermem-floors
	$(TARGET)/release/ethermem-floors run --json out/bench/floors.json

.PHONY: bench-kv
bench-kv: build ## Measure the key-value server beside redis-server
	$(PYTHON) scripts/bench_kv.py --command $(TARGET)/release/ethermem
	$(PYTHON) scripts/bench_kv.py --command $(TARGET)/release/ethermem --pool node
	$(PYTHON) scripts/bench_kv.py --command $(TARGET)/release/ethermem --pool node --index node

# RACK_PYTHON has numpy, mpi4py, dask and distributed; without them, two programs are left out.
RACK_PYTHON ?= $(PYTHON)
.PHONY: bench-rack
bench-rack: build ## Measure iperf3, Redis, Open MPI and others on kernel sockets and in a rack
	$(PYTHON) scripts/bench_rack_programs.py --command $(TARGET)/release/ethermem \
	    --python $(RACK_PYTHON)

# Root, and a kernel with zram; `workloads/apps/run --install NAME` installs what a program needs.
.PHONY: bench-swap
bench-swap: build ## Measure programs with little local memory beside the kernel's swap in zram
	$(PYTHON) scripts/bench_swap_programs.py --command $(TARGET)/release/ethermem

# Root, and a kernel with zram; both swap to a file in out, too.
.PHONY: bench-graph
bench-graph: build ## Measure a graph larger than local memory: on pools, disk swap, zram
	@$(PYTHON) scripts/python_env.py bench-graph python scripts/bench_graph.py \
	    --command $(TARGET)/release/ethermem --draw out/graph.svg

.PHONY: bench-swap-device
bench-swap-device: build ## Measure pools as a swap device, and what a fault costs in software
	$(PYTHON) scripts/bench_swap_device.py --command $(TARGET)/release/ethermem

.PHONY: bench-waits
bench-waits: build ## Measure what a network costs, by the clock and by waits, beside busy programs
	$(PYTHON) scripts/bench_waits.py --command $(TARGET)/release/ethermem

.PHONY: bench-cache
bench-cache: build ## Measure the cache of a pool beside a memory node without it
	$(CARGO) bench --locked -p ethermem-kv --bench cache -- $(TARGET)/release/ethermem

.PHONY: docs
docs: docs-api docs-book ## Build the documentation: the site, and the API with private items

.PHONY: docs-api
docs-api:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --locked

# mdBook is built once, into .tools, in four minutes: lint checks links and code without it.
.PHONY: docs-book
docs-book: $(MDBOOK)
	$(MDBOOK) build --dest-dir $(abspath $(TARGET))/book
	$(PYTHON) -B scripts/book.py check $(abspath $(TARGET))/book

$(MDBOOK):
	$(CARGO) install mdbook --version $(MDBOOK_VERSION) --locked --root $(dir $(@D)) \
	    --target-dir $(TARGET)/tools

# Cheapest first, so that a slip shows at once.
.PHONY: lint
lint: lint-but-tidy lint-tidy
lint: ## Check format, lints, documentation, style, purity, licences

# The suite `rust` of the tests runs tidy, too: .ci/run does not build it twice.
.PHONY: lint-but-tidy
lint-but-tidy: lint-format lint-scripts lint-python lint-rtl lint-clippy docs-api lint-pure
lint-but-tidy: lint-fuzz lint-deny

.PHONY: lint-format
lint-format:
	$(CARGO) fmt --all --check
ifneq ($(FUZZ_MANIFEST),)
	$(CARGO) fmt --manifest-path $(FUZZ_MANIFEST) --check
endif

.PHONY: lint-scripts
lint-scripts:
	@git ls-files -z -- '*.py' | xargs -0 -r $(PYTHON) scripts/compile_all.py
	@{ git ls-files -z -- '*.sh'; printf '.ci/run\0'; } | xargs -0 -r -n 1 bash -n

# The shell ends at the first of them that fails.
.PHONY: lint-python
lint-python:
	@$(PYTHON) scripts/python_env.py lint \
	    bash -euxc 'ruff format --check conformance python scripts rtl workloads/apps; \
	        ruff check conformance python scripts rtl workloads/apps; \
	        mypy'

# Verilator and yosys with every warning on; rtl/flow/lint has the waivers.
.PHONY: lint-rtl
lint-rtl:
	@PYTHONPATH=rtl $(PYTHON) scripts/python_env.py rtl python -m flow.lint

.PHONY: lint-clippy
lint-clippy:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --workspace --bins --no-default-features --locked -- -D warnings
	$(CARGO) clippy -p ethermem-capi --lib --no-default-features --locked -- -D warnings

.PHONY: lint-tidy
lint-tidy:
	$(CARGO) test --quiet -p ethermem-tidy --locked

# The pure crates build where there is no clock, file or thread.
.PHONY: lint-pure
lint-pure:
	@target=wasm32-unknown-unknown; \
	libraries="$$(rustc --print target-libdir --target $$target)"; \
	if compgen -G "$$libraries/libstd-*.rlib" > /dev/null; then \
	    set -x; $(CARGO) build --locked --lib --target $$target $(PURE_CRATES); \
	else \
	    echo "SKIPPED: purity of the pure crates: target $$target is not installed"; \
	fi

# The fuzz targets are a workspace of their own, and libFuzzer is C++. By the same profiles and in
# the same folder, most of what both workspaces depend on is checked once.
.PHONY: lint-fuzz
lint-fuzz:
	@if [ -z "$(FUZZ_MANIFEST)" ]; then \
	    echo "SKIPPED: fuzz targets: there are none"; \
	elif ! command -v c++ > /dev/null; then \
	    echo "SKIPPED: fuzz targets: libFuzzer needs a C++ compiler"; \
	else \
	    set -x; \
	    $(CARGO) clippy --manifest-path $(FUZZ_MANIFEST) --config Cargo.toml \
	        --target-dir $(TARGET) --all-targets --locked -- -D warnings; \
	fi

.PHONY: lint-deny
lint-deny:
	@deny="$(PYTHON) scripts/python_env.py cargo $(CARGO) deny"; \
	if ! $$deny --version > /dev/null 2>&1; then \
	    echo "SKIPPED: licences and advisories: cargo-deny is not installed"; \
	    exit; \
	fi; \
	(set -x; $$deny --locked check bans licenses sources); \
	if $$deny fetch db; then \
	    (set -x; $$deny --locked check advisories); \
	else \
	    echo "SKIPPED: advisories: their database cannot be fetched"; \
	fi

.PHONY: soak
soak: ## Fuzz every target for FUZZ_S seconds, test properties with many cases
	ETHERMEM_TORTURE=$(TORTURE_ROUNDS) PROPTEST_CASES=$(PROPTEST_CASES_SOAK) \
	    ETHERMEM_KILLS=$(KILLS_SOAK) ETHERMEM_PAGER_KILLS=$(PAGER_KILLS_SOAK) \
	    ETHERMEM_ATTACK_S=$(ATTACK_S_SOAK) ETHERMEM_README=whole \
	    TORTURE_CALLS=$(RACK_CALLS_SOAK) LIES_CONNECTIONS=$(LIES_SOAK) \
	    ETHERMEM_THREAD_OPERATIONS=$(THREAD_OPERATIONS_SOAK) \
	    $(CARGO) test --workspace --locked
	@$(MAKE) test-apps
	ETHERMEM_CONFORMANCE=whole $(PYTHON) scripts/run_tests.py conformance
	ETHERMEM_COMMANDS=whole ETHERMEM_THREAD_OPERATIONS=$(PYTHON_THREAD_OPERATIONS_SOAK) \
	    $(PYTHON) scripts/python_env.py test python -m pytest -s python/tests/test_commands.py \
	    python/tests/test_threads.py
	RTL_CYCLES=$(RTL_CYCLES_SOAK) $(PYTHON) scripts/python_env.py rtl python -m pytest rtl
	@$(MAKE) fuzz

# Sanitizers are options of a nightly compiler; RUSTC_BOOTSTRAP has the installed one take them.
.PHONY: fuzz
fuzz: ## Fuzz the targets named in FUZZ, or all, for FUZZ_S seconds each
	@if [ -z "$(FUZZ_MANIFEST)" ]; then \
	    echo "SKIPPED: fuzzing: there are no fuzz targets"; \
	elif ! $(CARGO) fuzz --version > /dev/null 2>&1; then \
	    echo "SKIPPED: fuzzing: needs cargo-fuzz (cargo install cargo-fuzz)"; \
	else \
	    export RUSTC_BOOTSTRAP=1; \
	    for fuzz_target in $(or $(FUZZ),$$($(CARGO) fuzz list)); do \
	        echo "== $$fuzz_target"; \
	        seeds="fuzz/seeds/$$fuzz_target"; \
	        mkdir -p "fuzz/corpus/$$fuzz_target"; \
	        $(CARGO) fuzz run "$$fuzz_target" "fuzz/corpus/$$fuzz_target" \
	            $$(if [ -d "$$seeds" ]; then echo "$$seeds"; fi) \
	            -- -max_total_time=$(FUZZ_S); \
	    done; \
	fi

.PHONY: clean
clean: ## Delete what builds and runs made
	$(CARGO) clean
	rm -rf out .tools .venv
