# The few things one does here. Each target does its own set-up; `make` lists them.

SHELL := /bin/bash
PACKAGES := gcc make pkg-config git ca-certificates e2fsprogs gzip iproute2 nftables util-linux libarchive-tools \
	qemu-system-x86 qemu-system-arm qemu-system-misc qemu-utils qemu-guest-agent ovmf qemu-efi-aarch64 \
	busybox-static linux-image-cloud-amd64 swtpm tmux openssh-client curl vncsnapshot prometheus
XTASK := $(or $(CARGO_TARGET_DIR),target)/debug/xtask
# The same random cases in every run: what is tested does not change unless the code does. `make soak` looks further.
export PROPTEST_RNG_SEED ?= 1
VERSION := $(shell sed -n '/^version/s/.*"\(.*\)"/\1/p' Cargo.toml)
RELEASE := $(abspath $(or $(CARGO_TARGET_DIR),target))/release

.PHONY: help up down images test test-fast test-cluster soak lint bench release cluster build packages

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

up: packages ## Start a cluster on this machine, install the system and boot an example VM
	cargo xtask up

down: packages ## End what `make up` started
	cargo xtask down

images: packages ## Pack the images of the system, as OCI archives
	cargo xtask images --tag $(VERSION)

test: lint test-fast test-cluster ## Run all that must pass

test-fast: packages ## Run the tests that need no cluster
	cargo test --workspace --locked --no-fail-fast

# The clusters of the tests are taken down whatever becomes of the tests.
test-cluster: build ## Run the tests on a real Kubernetes
	$(XTASK) cluster build
	cargo test --workspace --locked --no-fail-fast --test cluster -- --test-threads=8; status=$$?; \
	$(XTASK) cluster down --prefix test; exit $$status

# The same tests, for longer: SOAK_ROUNDS of each, and another order with another SOAK_SEED.
soak: build ## Kill components and load guests for hours, to find what is rare
	$(XTASK) cluster build
	SOAK_ROUNDS=$${SOAK_ROUNDS:-300} SOAK_SEED=$${SOAK_SEED:-$$RANDOM} cargo test --locked -p cluster-tests \
		--test cluster -- --nocapture --test-threads=1 nobody_notices_when machines_need_no_more; status=$$?; \
	$(XTASK) cluster down --prefix test; exit $$status

lint: packages ## Check format, lints and dependencies
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy --workspace --locked --test cluster -- -D warnings
	@scripts/cargo-deny check bans licenses sources

bench: packages release ## Measure
	cargo bench --locked -p kubevirt-admission
	KUBEVIRT_BINARY=$(RELEASE)/kubevirt cargo bench --locked --profile dev -p kubevirt --bench launcher
	KUBEVIRT_BINARY=$(RELEASE)/kubevirt cargo bench --locked -p kubevirt --bench users && \
	cargo bench --locked --profile dev -p cluster-tests --bench cluster; status=$$?; \
	cargo xtask cluster down --prefix bench; exit $$status

# As they are shipped: static, so that they run in any image, and not relocatable, which saves memory of every process.
STATIC := -C target-feature=+crt-static -C relocation-model=static
release: packages ## Build the programs as they are shipped
	cargo rustc --release --locked -p kubevirt --bin kubevirt -- $(STATIC)
	cargo rustc --release --locked -p container-disk --bin container-disk -- $(STATIC)

cluster: build ## Start a Kubernetes of two nodes on this machine
	$(XTASK) cluster up --nodes 2

# With the tests, so that nothing is built a second time for other features.
build: packages
	cargo build --workspace --bins --tests --locked

packages:
	@scripts/packages $(PACKAGES)
	@command -v cargo >/dev/null || { echo 'Rust is missing: install it with rustup'; exit 1; }
