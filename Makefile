# The commands of everyday work. What they do stands in scripts/.

.PHONY: help demo test test-engines test-long soak check bench install dist dist-check generate libraries clean-tools
.DEFAULT_GOAL := help

help: ## Show this list
	@awk -F ':.* ## ' '/^[a-z-]+:.* ## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

demo: ## Show idemctl at work on a private throw-away server
	@scripts/demo.sh

test: ## Run every test but the long ones, on one engine (the one at hand, else the first to be had)
	@scripts/test.sh

test-engines: ## Run the tests whose outcome depends on the engine on all others (of Redis, Redis 6.2, Redis 8, Valkey 9)
	@scripts/test.sh --engines

test-long: ## Run the long tests: random protocols and schedules, values of megabytes, storms (SEED), ten million records (N)
	@$(if $(SEED),IDEMCTL_SEED=$(SEED)) scripts/test.sh --long
	@SCALE=yes N=$(N) scripts/bench.sh

soak: ## Let the storm of the tests rage (MINUTES=10; MODE=server, cluster, cluster-replicas, sentinel; ENGINE; SEED)
	@MINUTES=$(MINUTES) MODE=$(MODE) ENGINE=$(ENGINE) SEED=$(SEED) scripts/soak.sh

check: ## Format, lints, documentation, dependencies, shell scripts
	@scripts/check.sh

bench: ## Run the benchmarks (100k records, about a minute; N=1000000 for more)
	@N=$(N) ROUNDS=$(ROUNDS) scripts/bench.sh

install: ## Install idemctl for this user
	IDEMCTL_COMMIT=$$(git rev-parse --short=12 HEAD 2>/dev/null) cargo install --locked --path .

dist: ## Put a release together in target/dist/: for two architectures static binary, .deb and .rpm; source crate, SBOM, SHA256SUMS
	@scripts/dist.sh

dist-check: ## Build the static binaries and the .deb, run them in an empty root and in an emulator, and install the .deb in a Debian root
	@scripts/dist-check.sh

generate: ## Write completions/, man/, the tables of lua/reference/README.md, the consoles and the matrix of the documents anew
	IDEMCTL_BLESS=1 cargo test --locked --test source -- matrix:: removed:: yardstick::
	IDEMCTL_BLESS=1 cargo test --locked --test source -- manual::
	IDEMCTL_BLESS=1 cargo test --locked --test source -- generated::
	IDEMCTL_BLESS=1 cargo test --locked --test cli -- consoles:: explore::document::

libraries: ## Install the published libraries that can be had, write their fixtures anew, let each meet idemctl and replay 50 responses, probe three services (NAME=bullmq)
	@scripts/libraries.sh record $(NAME)
	@scripts/libraries.sh meet $(NAME)
	@scripts/libraries.sh probe $(NAME)
	cargo test --locked --test contract -- --ignored --nocapture promises::$(subst -,_,$(NAME))
	$(if $(NAME),,cargo test --locked --test contract -- --ignored replays::)

clean-tools: ## Remove the programs and libraries that test, check and libraries have fetched
	rm -rf .engines .tools .libraries
