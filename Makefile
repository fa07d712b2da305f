# The door to bawn; the rules of the build are meson's. See CONTRIBUTING.md.
PREFIX ?= /usr/local
MESON := /usr/bin/meson
NINJA := /usr/bin/ninja
PYTHON := /usr/bin/python3
# glibc's start executes some 55 CPUID instructions, each a trap in a virtual machine: 0.3 ms of a run.
# Elsewhere than on x86-64 bawn is built with it all the same.
CC_BAWN := $(if $(filter x86_64,$(shell uname -m)),musl-gcc,gcc)

build: build/build.ninja
	@$(NINJA) -C build --quiet

build/build.ninja:
	@tools/setup build
	@mkdir -p build/log
	@CC=$(CC_BAWN) $(MESON) setup build --prefix=$(PREFIX) >build/log/setup.txt || { cat build/log/setup.txt; exit 1; }

run: build
	@examples/tour

test:
	@tools/setup test
	@$(PYTHON) tests/runner

check: build
	@tools/setup test
	@tools/check/run

bench: build
	@tools/setup test
	@tests/bench/run

soak: build
	@tools/setup test
	@tools/soak

install: build/build.ninja
	@$(MESON) configure build --prefix=$(PREFIX)
	@$(NINJA) -C build --quiet
	@DESTDIR=$(DESTDIR) $(MESON) install -C build --no-rebuild

clean:
	@rm -rf build build-*

help:
	@echo 'make run      set up, build, and show bawn at work on a small project'
	@echo 'make test     set up, build and run every test'
	@echo 'make build    build/bawn'
	@echo 'make check    the rules of style that a script can check'
	@echo 'make bench    the numbers of docs/SPECIFICATION.md, side by side with a peer'
	@echo 'make soak     what is too long for make test'
	@echo 'make install  to PREFIX (/usr/local), below DESTDIR'

.PHONY: build run test check bench soak install clean help
