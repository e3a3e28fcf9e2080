# queen-s3: builds everything, tests it, measures it.
#
# A room is a folder (supervisor, worker, common, tests/...): each .c file in it is built with no edit here. All that is
# made goes under build/: release programs in build/ itself, the other variants (asan, tsan, clang) in build/<variant>/.
# `sh packaging/with-dependencies make ...` installs on Debian and Ubuntu what a target needs.

VARIANT  ?= release
PREFIX   ?= /usr/local
BINDIR   ?= $(PREFIX)/bin
DATADIR  ?= $(PREFIX)/share
MANDIR   ?= $(DATADIR)/man
# Where PicoMQ's connectors runtime looks for plugins is its own setting; a definition's `path` can also be absolute.
PLUGINDIR ?= $(PREFIX)/lib/picomq/connectors
DESTDIR  ?=
PYTHON   ?= /usr/bin/python3
JOBS     ?= $(shell nproc 2>/dev/null || echo 2)
SEEDS    ?= 10000

OUT := build$(if $(filter-out release,$(VARIANT)),/$(VARIANT))
OBJ := build/obj/$(VARIANT)

ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(VARIANT),fuzz)
CC := clang
endif
# The one C++ file (worker/connector/toml.cpp) is compiled by the sibling of the C compiler.
ifeq ($(origin CXX),default)
CXX = $(if $(findstring clang,$(CC)),clang++,g++)
endif

PACKAGES := libcurl openssl libzstd zlib libcjson libmicrohttpd expat snappy rdkafka

# Flags. Given on the command line, CFLAGS and LDFLAGS come after these and so win.
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror
# Hidden and position-independent, so that one set of objects serves programs and the plugin: what is hidden needs no
# detour through a table.
PLAIN    := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -O2 -g -fno-omit-frame-pointer -fPIC -fvisibility=hidden -I.
BASE     := -std=c11 $(PLAIN) $(WARNINGS)
BASE_CXX := -std=c++17 $(PLAIN) $(filter-out -Wstrict-prototypes -Wmissing-prototypes,$(WARNINGS))
HARDEN   := -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
LINK     := -Wl,--as-needed -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -pthread

FLAGS_release := $(HARDEN)
# Under a sanitizer the compilers warn of code that the instrumentation made, so there a warning is only that.
FLAGS_asan    := -Wno-error -fsanitize=address,undefined -fno-sanitize-recover=all
FLAGS_tsan    := -Wno-error -fsanitize=thread
FLAGS_fuzz    := -Wno-error -fsanitize=address,undefined -fno-sanitize-recover=all -fsanitize=fuzzer-no-link
FLAGS_clang   := $(HARDEN)
ifeq ($(VARIANT),clang)
CC := clang
endif

ifeq ($(origin FLAGS_$(VARIANT)),undefined)
$(error VARIANT=$(VARIANT): expected release, clang, asan, tsan or fuzz)
endif

BUILDING := $(filter-out help clean uninstall format deb,$(or $(MAKECMDGOALS),all))
ifneq ($(BUILDING),)
PKG_CONFIG ?= pkg-config
ifneq ($(shell $(PKG_CONFIG) --exists $(PACKAGES) check 2>/dev/null && echo yes),yes)
$(error missing development packages among: $(PACKAGES) check (on Debian and Ubuntu: sh packaging/with-dependencies make $(MAKECMDGOALS)))
endif
PKG_CFLAGS  := $(shell $(PKG_CONFIG) --cflags $(PACKAGES) check)
PKG_LIBS    := $(shell $(PKG_CONFIG) --libs $(PACKAGES)) -lstdc++
CHECK_LIBS  := $(shell $(PKG_CONFIG) --libs check)
endif

ALL_CFLAGS  = $(BASE) $(FLAGS_$(VARIANT)) $(PKG_CFLAGS) $(CFLAGS)
# The linker is C's, so without the checks that need the C++ compiler's runtime (`function` is clang's alone); and
# toml++ 3.3 says unreachable where a letter after a line's closing backslash gets to, and goes on rightly.
ALL_CXXFLAGS = $(BASE_CXX) $(FLAGS_$(VARIANT)) -fno-sanitize=vptr -fno-sanitize=unreachable \
               $(if $(findstring clang,$(CXX)),-fno-sanitize=function) $(CFLAGS)
ALL_LDFLAGS = $(FLAGS_$(VARIANT)) $(LINK) $(LDFLAGS)

# What there is to build, from what is there.
sources = $(sort $(wildcard $(foreach e,c cpp,$(addsuffix /*.$(e),$(1)) $(addsuffix /*/*.$(e),$(1)))))
objects = $(addprefix $(OBJ)/,$(addsuffix .o,$(basename $(1))))

COMMON_SRC     := $(call sources,common)
WORKER_SRC     := $(call sources,worker) $(sort $(wildcard worker/connector/plugin/*.c))
SUPERVISOR_SRC := $(filter-out supervisor/main.c,$(call sources,supervisor))
MAIN_SRC       := $(wildcard supervisor/main.c)
DEVBROKER_SRC  := $(call sources,tests/devbroker)
SIM_SRC        := $(call sources,tests/sim)
TOOL_SRC       := $(call sources,tests/tools)
BENCH_SRC      := $(call sources,tests/bench)
MAN_SRC        := $(call sources,man)
UNIT_SRC       := $(wildcard tests/unit/*_test.c)
SUPPORT_SRC    := $(filter-out $(UNIT_SRC),$(call sources,tests/unit))
FUZZ_SRC       := $(wildcard tests/fuzz/*_fuzz.c)
ALL_SRC        := $(COMMON_SRC) $(WORKER_SRC) $(SUPERVISOR_SRC) $(MAIN_SRC) $(DEVBROKER_SRC) $(SIM_SRC) $(TOOL_SRC) \
                  $(BENCH_SRC) $(MAN_SRC) $(UNIT_SRC) $(SUPPORT_SRC) $(FUZZ_SRC)
HEADERS        := $(sort $(wildcard $(foreach d,common worker supervisor man tests,$(d)/*.h $(d)/*/*.h $(d)/*/*/*.h)))

LIBS      := $(OUT)/libsupervisor.a $(OUT)/libworker.a $(OUT)/libcommon.a
PLUGIN    := $(OUT)/libpicomq_connector_s3_sink.so
PROGRAM   := $(if $(MAIN_SRC),$(OUT)/queen-s3)
DEVBROKER := $(if $(DEVBROKER_SRC),$(OUT)/tests/devbroker)
SIMULATE  := $(if $(SIM_SRC),$(OUT)/tests/sim/simulate)
TEMPLATES := $(sort $(wildcard man/*.in))
PAGES     := $(patsubst man/%.in,$(OUT)/man/%,$(TEMPLATES))
COMPLETE  := $(OUT)/man/queen-s3.bash $(OUT)/man/queen-s3.zsh
TOOLS     := $(patsubst tests/tools/%.c,$(OUT)/tests/tools/%,$(TOOL_SRC))
UNIT      := $(patsubst tests/unit/%.c,$(OUT)/tests/unit/%,$(UNIT_SRC))
FUZZ      := $(patsubst tests/fuzz/%.c,$(OUT)/tests/fuzz/%,$(FUZZ_SRC))
BENCH_RUN := $(firstword $(wildcard tests/bench/run tests/bench/run.py))
BENCH     := $(patsubst tests/bench/%.c,$(OUT)/tests/bench/%,$(BENCH_SRC))

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
# Several goals of one call are built one after the other: each builds what it needs by itself.
ifneq ($(word 2,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif
.PHONY: all test demo demo-connect bench readers lint format sanitize fuzz deb install uninstall clean help FORCE \
        programs unit-programs bench-programs connect-programs fuzz-programs lint-layout lint-tidy lint-cppcheck lint-scripts

# Two cores' worth of jobs when called plainly; `make -j1` and `make -jN` say otherwise.
in_parallel = $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS))$(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))

all: ## build build/queen-s3 and the development broker build/tests/devbroker
	+@$(in_parallel) programs

programs: $(LIBS) $(PROGRAM) $(PLUGIN) $(DEVBROKER) $(PAGES) $(COMPLETE)
unit-programs: programs $(UNIT) $(SIMULATE) $(TOOLS)
connect-programs: programs $(TOOLS)
bench-programs: programs $(BENCH) $(TOOLS)
fuzz-programs: $(FUZZ)

test: ## unit tests, simulator, integration tests against real processes
	+@$(in_parallel) unit-programs
	$(PYTHON) tests/run --build $(OUT) --seeds $(SEEDS)

demo: ## mirror this machine's package log (or INPUT=events.ndjson PARTITION_BY=field) into build/demo and show it
	+@$(in_parallel) programs
	$(PYTHON) tests/demo/run.py $(if $(INPUT),--input '$(INPUT)') $(if $(PARTITION_BY),--partition-by '$(PARTITION_BY)')

demo-connect: ## the same through a Kafka broker and `queen-s3 connect`, into build/demo-connect
	+@$(in_parallel) connect-programs
	$(PYTHON) tests/demo/connect.py

bench: ## measure: throughput, processor time, memory (prints a table)
	+@$(in_parallel) bench-programs
	$(if $(filter %.py,$(BENCH_RUN)),$(PYTHON) )$(or $(BENCH_RUN),$(error there is no tests/bench/run))

readers: ## read lakes in every form with DuckDB, PyArrow, Polars, pandas, ClickHouse and Spark: tests/readers/MATRIX.md
	+@$(in_parallel) programs
	$(PYTHON) tests/readers/readers.py

sanitize: ## everything under AddressSanitizer, UBSan and ThreadSanitizer, and a few seconds of each fuzz target
	+@$(in_parallel) VARIANT=asan unit-programs
	$(PYTHON) tests/run --build build/asan --seeds 300
	+@$(in_parallel) VARIANT=tsan unit-programs
	$(PYTHON) tests/run --build build/tsan --only unit
	$(PYTHON) tests/run --build build/tsan plugin_spool_test
	+@$(MAKE) --no-print-directory fuzz SECONDS_EACH=5

# Each target starts from its corpus, tests/fuzz/corpus/<name>/; what it finds new stays in build/fuzz/.
SECONDS_EACH ?= 60
fuzz: ## run every fuzz target over its corpus for SECONDS_EACH (60) seconds
	+@$(in_parallel) VARIANT=fuzz fuzz-programs
	@set -e; for f in $(patsubst tests/fuzz/%.c,%,$(FUZZ_SRC)); do \
	    name=$${f%_fuzz}; new=build/fuzz/$$name; mkdir -p $$new; corpus=; \
	    if [ -d tests/fuzz/corpus/$$name ]; then corpus=tests/fuzz/corpus/$$name; fi; \
	    echo "fuzz $$name, $(SECONDS_EACH) s"; \
	    build/fuzz/tests/fuzz/$$f -max_total_time=$(SECONDS_EACH) -timeout=10 -rss_limit_mb=2048 \
	        -artifact_prefix=$$new- -verbosity=0 -print_final_stats=0 $$new $$corpus; \
	done

# What the linters say is an error. A file that was clean is looked at again only when it, what it includes, or the
# rules have changed (one stamp a file, on top of the compiler's own dependencies).
LINT_C    := $(filter %.c,$(ALL_SRC))
LINT_CXX  := $(filter %.cpp,$(ALL_SRC))
# Scripts are found by their first line, $(1), as recursively expanded variables: only lint looks.
scripts    = $(sort $(shell find tests packaging .ci -type f -not -path '*/corpus/*' \
                 -exec awk 'FNR == 1 && /^\#!.*$(1)/ { print FILENAME } { nextfile }' {} +))
LINT_PY    = $(sort $(shell find tests packaging -name '*.py') $(call scripts,python))
LINT_SH    = $(call scripts,[ \/](ba|da)?sh( |$$))
CPPCHECK  := --quiet --enable=warning,performance,portability,style --std=c11 --inline-suppr --error-exitcode=1 \
             --cppcheck-build-dir=build/lint/cppcheck --suppressions-list=.cppcheck -D_GNU_SOURCE -I.
TIDY      := $(patsubst %.c,build/lint/%.tidy,$(LINT_C))

lint: ## clang-format, clang-tidy, cppcheck, shellcheck, pyflakes, pycodestyle
	+@$(in_parallel) lint-layout lint-tidy lint-cppcheck lint-scripts

lint-layout:
	@$(if $(LINT_C)$(HEADERS),clang-format --dry-run -Werror --ferror-limit=5 $(LINT_C) $(LINT_CXX) $(HEADERS))

lint-tidy: $(TIDY)

lint-cppcheck:
	@mkdir -p build/lint/cppcheck
	@cppcheck $(CPPCHECK) $(LINT_C)

lint-scripts:
	@$(if $(LINT_SH),shellcheck $(LINT_SH))
	@$(if $(LINT_PY),$(PYTHON) -m pyflakes $(LINT_PY))
	@$(if $(LINT_PY),$(PYTHON) -m pycodestyle --max-line-length=120 $(LINT_PY))

format: ## lay out every C file as .clang-format says (or FILES='a.c b.h' alone)
	clang-format -i $(or $(FILES),$(LINT_C) $(LINT_CXX) $(HEADERS))

build/lint/%.tidy: %.c $(OBJ)/%.o .clang-tidy
	@mkdir -p $(@D)
	@echo "  TIDY  $<"
	@clang-tidy --quiet $< -- $(filter-out -f%,$(BASE)) $(PKG_CFLAGS) >$@.log 2>&1 || { cat $@.log; exit 1; }
	@touch $@

# Where the shells look for what they don't know yet.
BASH_PLACE := $(DATADIR)/bash-completion/completions
ZSH_PLACE  := $(DATADIR)/zsh/site-functions

install: all ## install the program, its manual and the shells' completions (PREFIX=/usr/local, DESTDIR=)
	install -d '$(DESTDIR)$(BINDIR)' '$(DESTDIR)$(BASH_PLACE)' '$(DESTDIR)$(ZSH_PLACE)'
	install -m 755 build/queen-s3 '$(DESTDIR)$(BINDIR)/queen-s3'
	install -d '$(DESTDIR)$(PLUGINDIR)'
	install -m 644 build/libpicomq_connector_s3_sink.so '$(DESTDIR)$(PLUGINDIR)/'
	@for page in $(PAGES); do \
	    section=$${page##*.}; install -d '$(DESTDIR)$(MANDIR)'/man$$section; \
	    echo "install -m 644 $$page $(DESTDIR)$(MANDIR)/man$$section/"; \
	    install -m 644 $$page '$(DESTDIR)$(MANDIR)'/man$$section/; \
	done
	install -m 644 build/man/queen-s3.bash '$(DESTDIR)$(BASH_PLACE)/queen-s3'
	install -m 644 build/man/queen-s3.zsh '$(DESTDIR)$(ZSH_PLACE)/_queen-s3'

# A folder with the project's as links is the source tree that dpkg-buildpackage wants: only what has changed is compiled,
# as -nc keeps its build/. build/deb/ has the debug symbols and the .changes too.
DEB_SOURCE := build/deb/source
deb: ## build the Debian package build/queen-s3_VERSION_ARCH.deb
	@mkdir -p $(DEB_SOURCE)
	@rm -rf build/*.deb build/deb/queen-s3* $(DEB_SOURCE)/debian
	@find $(DEB_SOURCE) -maxdepth 1 -type l -delete
	@ln -s $(foreach f,$(wildcard common supervisor worker man packaging Makefile),../../../$(f)) $(DEB_SOURCE)
	@cp -r packaging/debian README.md $(DEB_SOURCE)
	cd $(DEB_SOURCE) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL dpkg-buildpackage -b -nc -us -uc -j$(JOBS)
	cp build/deb/queen-s3_*.deb build/

uninstall: ## remove what install put there
	rm -f '$(DESTDIR)$(PLUGINDIR)/libpicomq_connector_s3_sink.so'
	rm -f '$(DESTDIR)$(BINDIR)/queen-s3' '$(DESTDIR)$(BASH_PLACE)/queen-s3' '$(DESTDIR)$(ZSH_PLACE)/_queen-s3'
	@for page in $(notdir $(PAGES)); do rm -f '$(DESTDIR)$(MANDIR)'/man$${page##*.}/$$page; done

clean: ## remove build/
	rm -rf build

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
	    while IFS='|' read -r target what; do printf '%-18s %s\n' "$$target" "$$what"; done

# A file whose text is $(2), written only when that changes: what depends on it is rebuilt then and only then.
define remember
$(1): FORCE
	@mkdir -p $$(@D)
	@printf '%s\n' '$(2)' | cmp -s - $$@ || printf '%s\n' '$(2)' > $$@
endef

$(eval $(call remember,$(OBJ)/flags,$(CC) $(ALL_CFLAGS) | $(CXX) $(ALL_CXXFLAGS) | $(ALL_LDFLAGS) | $(PKG_LIBS) $(CHECK_LIBS)))

$(OBJ)/%.o: %.c $(OBJ)/flags
	@mkdir -p $(@D)
	@echo "  CC    $(if $(filter-out release,$(VARIANT)),[$(VARIANT)] )$<"
	@$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(OBJ)/%.o: %.cpp $(OBJ)/flags
	@mkdir -p $(@D)
	@echo "  CXX   $(if $(filter-out release,$(VARIANT)),[$(VARIANT)] )$<"
	@$(CXX) $(ALL_CXXFLAGS) -MMD -MP -c $< -o $@

# $(1) the library's name, $(2) its sources. The list of members is remembered, so that a removed file leaves the library.
define library
$(call remember,$(OBJ)/$(1).members,$(2))
$(OUT)/$(1).a: $(call objects,$(2)) $(OBJ)/$(1).members
	@mkdir -p $$(@D)
	@echo "  AR    $$@"
	@rm -f $$@ && ar rcsD $$@ $(call objects,$(2))
endef

$(eval $(call library,libcommon,$(COMMON_SRC)))
$(eval $(call library,libworker,$(WORKER_SRC)))
$(eval $(call library,libsupervisor,$(SUPERVISOR_SRC)))
# The simulator's models of documents and bucket serve the unit tests' scripted world too.
$(eval $(call library,libtestsupport,$(SUPPORT_SRC) tests/sim/documents.c tests/sim/bucket.c))

link = @mkdir -p $(@D) && echo "  LINK  $@" && $(CC) -pie $(ALL_LDFLAGS) -o $@ $(filter %.o,$^)

$(OUT)/queen-s3: $(call objects,$(MAIN_SRC)) $(LIBS)
	$(link) $(LIBS) $(PKG_LIBS)

# Four functions are exported, and it is never unloaded: the head of plugin.c says why. A sanitizer's runtime is the
# host's, so there some symbols stay open.
EXPORTS := worker/connector/plugin/exports.map
$(PLUGIN): $(OBJ)/worker/connector/plugin/plugin.o $(EXPORTS) $(LIBS)
	@echo "  LINK  $@"
	@$(CC) -shared $(ALL_LDFLAGS) -Wl,--version-script=$(EXPORTS) -Wl,-z,nodelete -Wl,-soname,$(@F) \
	    $(if $(findstring sanitize,$(FLAGS_$(VARIANT))),,-Wl,-z,defs) -o $@ $< $(LIBS) $(PKG_LIBS)

$(OUT)/man/generate: $(call objects,$(MAN_SRC)) $(LIBS)
	$(link) $(LIBS) $(PKG_LIBS)

# A page names the others that there are.
$(eval $(call remember,$(OBJ)/templates,$(TEMPLATES)))

$(OUT)/man/%: man/%.in $(OUT)/man/generate $(OBJ)/templates
	@echo "  PAGE  $@"
	@$(OUT)/man/generate page $< >$@

$(COMPLETE): $(OUT)/man/queen-s3.%: $(OUT)/man/generate
	@echo "  MAKE  $@"
	@$(OUT)/man/generate $* >$@

# It shares nothing with what it tests, not even a library.
$(OUT)/tests/devbroker: $(call objects,$(DEVBROKER_SRC))
	$(link) $(PKG_LIBS)

$(OUT)/tests/sim/simulate: $(call objects,$(SIM_SRC)) $(LIBS)
	$(link) $(LIBS) $(PKG_LIBS)

$(OUT)/tests/unit/%: $(OBJ)/tests/unit/%.o $(OUT)/libtestsupport.a $(LIBS)
	$(link) $(OUT)/libtestsupport.a $(LIBS) $(CHECK_LIBS) $(PKG_LIBS)

$(OUT)/tests/tools/%: $(OBJ)/tests/tools/%.o $(LIBS)
	$(link) $(LIBS) $(PKG_LIBS)

$(OUT)/tests/bench/%: $(OBJ)/tests/bench/%.o $(LIBS)
	$(link) $(LIBS) $(PKG_LIBS)

$(OUT)/tests/fuzz/%: $(OBJ)/tests/fuzz/%.o $(LIBS)
	$(link) -fsanitize=fuzzer $(LIBS) $(PKG_LIBS)

-include $(wildcard $(patsubst %.o,%.d,$(call objects,$(ALL_SRC))))
