# The everyday commands. `make` alone lists them.
.PHONY: help setup demo check test soak bench fuzz clean

help: ## list these commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## */make \1|/' | column -t -s '|'

setup: ## install what checks and tests need
	@scripts/setup.sh

demo: ## build hutch and let it do its main job once, with timings
	@scripts/demo.sh

check: ## formatting, lints, licences, house rules, documentation
	@scripts/setup.sh checks
	@scripts/check.sh

test: ## every test, ten seconds of each fuzz target, and a look at what is left behind
	@scripts/setup.sh tests
	@scripts/test.sh

soak: ## sleep and wake for SOAK_SECONDS (default 600) and watch what grows
	@scripts/soak.sh

bench: ## the numbers of SPECIFICATION.md; BENCH_ARGS=--json for a program
	@scripts/setup.sh tests
	@scripts/bench.sh $(BENCH_ARGS)

fuzz: ## FUZZ_SECONDS (default 60) of each fuzz target
	@scripts/fuzz.sh $${FUZZ_SECONDS:-60}

clean: ## remove everything that was built
	cargo clean
	rm -rf tests/interop/node_modules sdk/typescript/node_modules sdk/typescript/dist
