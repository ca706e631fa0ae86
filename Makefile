# The few things one does here. Each target does its own set-up; `make` lists them.

SHELL := /bin/bash
PACKAGES := gcc make pkg-config git ca-certificates

.PHONY: help up test lint bench packages

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

up: ## Boot a VM on this machine (for now: say what it will do)
	@echo 'make up will start a cluster on this machine, install KubeVirt, boot an example VM and'
	@echo 'show its login prompt. Until then, try admission:'
	@echo '  cargo run -p kubevirt -- admit -f examples/vm.yaml'

test: lint ## Run all that must pass
	cargo test --workspace --locked
	cargo run --quiet --locked -p kubevirt -- admit -f examples/vm.yaml

lint: packages ## Check format, lints and dependencies
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	@scripts/cargo-deny check bans licenses sources

bench: packages ## Measure
	cargo bench --workspace --locked

packages:
	@scripts/packages $(PACKAGES)
