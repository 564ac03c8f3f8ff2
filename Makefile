# Four words for people who do not know cargo. Whatever needs thinking is in xtask.

TARGET := $(or $(CARGO_TARGET_DIR),target)
PREFIX := /usr/local

.PHONY: build test demo install tools

build: tools
	cargo build --release --locked

# Everything that a change must pass: see `cargo xtask ci --list`.
test: tools
	cargo xtask ci

# A cluster in virtual time loses a node and gets its database back.
demo: build
	$(TARGET)/release/mainstay demo

install: build
	install -D -m 755 $(TARGET)/release/mainstay $(DESTDIR)$(PREFIX)/bin/mainstay

# What the distribution must provide; a no-op where it is there.
tools:
	@sh .ci/tools
