# The commands of everyday work. What they do stands in scripts/.

.PHONY: help demo test soak check bench install generate clean-tools
.DEFAULT_GOAL := help

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.* ## /  make \1\t/p' Makefile | expand -t 22

demo: ## Show idemctl at work on a private throw-away server
	@scripts/demo.sh

test: ## Run all tests, on each engine there is (Redis, Redis 6.2, Redis 8, Valkey 9)
	@scripts/test.sh

soak: ## Let the storm of the tests rage (MINUTES=10; MODE=server, cluster, cluster-replicas, sentinel; ENGINE; SEED)
	@MINUTES=$(MINUTES) MODE=$(MODE) ENGINE=$(ENGINE) SEED=$(SEED) scripts/soak.sh

check: ## Format, lints, documentation, dependencies, shell scripts
	@scripts/check.sh

bench: ## Run the benchmarks (100k records, about a minute; N=1000000 for more)
	@N=$(N) ROUNDS=$(ROUNDS) scripts/bench.sh

install: ## Install idemctl for this user
	IDEMCTL_COMMIT=$$(git rev-parse --short=12 HEAD 2>/dev/null) cargo install --locked --path .

generate: ## Write completions/, man/, the tables of lua/reference/README.md, the consoles and the matrix of the documents anew
	IDEMCTL_BLESS=1 cargo test --locked --test source -- manual:: matrix::
	IDEMCTL_BLESS=1 cargo test --locked --test source -- generated::
	IDEMCTL_BLESS=1 cargo test --locked --test cli -- consoles::

clean-tools: ## Remove the programs that test and check have fetched
	rm -rf .engines .tools
