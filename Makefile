# weir: `make` builds all, `make weir` what `make install` installs, `make test` runs every test too;
# `make V=1` shows the commands.
# Sources are found by their place: a new file in a folder needs no line here.

CC      ?= gcc
CLANG   ?= clang
BPFTOOL ?= bpftool
B       := build
V       ?= 0
Q       := $(if $(filter 1,$(V)),,@)
say      = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' $(1) $(2))

PKGS    := libbpf libxdp jansson libevent yaml-0.1
WARN    := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
CFLAGS  ?= -O2 -g
CPPFLAGS += -Iinclude -Iuser -I$(B)/include $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
ALLFLAGS = -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) $(CPPFLAGS) -MMD -MP
LDLIBS  += $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lm -lpthread
CURSES_LIBS := $(shell pkg-config --libs ncursesw 2>/dev/null)
SAN     := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
MULTIARCH := $(shell $(CC) -print-multiarch)
# -ffreestanding: clang's own stdint.h, since glibc's wants headers of a target it doesn't know.
BPFFLAGS := -O2 -g -target bpf -mcpu=v3 -ffreestanding -std=gnu11 -Wall -Wextra -Werror \
	-Iinclude -Ibpf -idirafter /usr/include/$(MULTIARCH) -MMD -MP

LIB_SRC    := $(wildcard user/lib/*.c)
CTRL_SRC   := $(wildcard user/controller/*.c)
CLI_SRC    := $(wildcard user/cli/*.c)
PAGES      := $(patsubst user/%,$(B)/include/%.inc,$(wildcard user/dashboard/*))
BPF_SRC    := $(wildcard bpf/*.bpf.c)
TOOL_SRC   := $(wildcard tests/tools/*.c)
UNIT_SRC   := $(wildcard tests/unit/test_*.c)
KERNEL_SRC := $(wildcard tests/kernel/test_*.c)
RIG_SRC    := $(wildcard tests/kernel/rig*.c)
FUZZ_SRC   := $(wildcard tests/fuzz/fuzz_*.c)
BENCH_SRC  := $(filter-out %.bpf.c,$(wildcard tests/bench/*.c))

LIB_OBJ  := $(LIB_SRC:%.c=$(B)/%.o)
CTRL_OBJ := $(CTRL_SRC:%.c=$(B)/%.o)
CLI_OBJ  := $(CLI_SRC:%.c=$(B)/%.o)
# weir_test: the same programs on an injected clock, for `weir try` and the kernel tests.
SKELS    := $(BPF_SRC:bpf/%.bpf.c=$(B)/include/%.skel.h) $(B)/include/weir_test.skel.h
RIG_OBJ  := $(RIG_SRC:%.c=$(B)/%.o)
TEST_SKELS := $(patsubst tests/kernel/%.bpf.c,$(B)/include/%.skel.h,$(wildcard tests/kernel/*.bpf.c))
TOOLS    := $(TOOL_SRC:tests/tools/%.c=$(B)/tests/%)
UNITS    := $(UNIT_SRC:tests/unit/%.c=$(B)/tests/unit/%)
KERNELS  := $(KERNEL_SRC:tests/kernel/%.c=$(B)/tests/kernel/%)

.PHONY: all weir lib tests test check bench clean fuzz fuzz-targets static list-static FORCE
.SECONDARY:
.DELETE_ON_ERROR:

all: weir tests
weir: lib $(B)/weir
lib: $(B)/libweir.a
tests: $(TOOLS) $(UNITS) $(KERNELS) $(if $(BENCH_SRC),$(B)/tests/bench/bench)

$(B)/libweir.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

# libweir.so, its pkg-config file and headers; the tests that need more than one program.
LIB_VERSION := 0.1.0
LIB_SONAME  := libweir.so.0
PREFIX      ?= /usr/local
LIBDIR      ?= lib
LIB_HEADERS := $(addprefix include/weir/,weir.h api.h backoff.h breaker.h bucket.h deadline.h gate.h \
	governor.h period.h shedder.h sliding.h window.h)
TSAN        := -O1 -g -fsanitize=thread

lib: $(B)/libweir.so $(B)/weir.pc
tests: $(B)/tests/unit/test_threads

$(B)/$(LIB_SONAME): $(LIB_OBJ) user/lib/libweir.map
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(LIB_SONAME) -Wl,-z,defs \
		-Wl,--version-script=user/lib/libweir.map $(LIB_OBJ) -o $@ -lm

$(B)/libweir.so: $(B)/$(LIB_SONAME)
	$(Q)ln -sf $(LIB_SONAME) $@

$(B)/weir.pc: packaging/weir.pc.in Makefile FORCE
	$(Q)mkdir -p $(@D) && sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(LIB_VERSION)|' \
		$< > $@

.PHONY: install-lib
install-lib: lib
	install -d $(DESTDIR)$(PREFIX)/include/weir $(DESTDIR)$(PREFIX)/$(LIBDIR)/pkgconfig
	install -m 644 $(LIB_HEADERS) $(DESTDIR)$(PREFIX)/include/weir
	install -m 644 $(B)/libweir.a $(DESTDIR)$(PREFIX)/$(LIBDIR)
	install -m 755 $(B)/$(LIB_SONAME) $(DESTDIR)$(PREFIX)/$(LIBDIR)/libweir.so.$(LIB_VERSION)
	ln -sf libweir.so.$(LIB_VERSION) $(DESTDIR)$(PREFIX)/$(LIBDIR)/$(LIB_SONAME)
	ln -sf $(LIB_SONAME) $(DESTDIR)$(PREFIX)/$(LIBDIR)/libweir.so
	install -m 644 $(B)/weir.pc $(DESTDIR)$(PREFIX)/$(LIBDIR)/pkgconfig

$(B)/tests/unit/test_vectors: | $(B)/tests/replay-vectors
$(B)/tests/unit/test_library: | lib

$(B)/tests/unit/test_threads: tests/tsan/test_threads.c tests/harness.c $(LIB_SRC)
	$(call say,TSAN,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(filter-out -MMD -MP,$(ALLFLAGS)) $(TSAN) -Itests $^ -o $@ \
		-lcunit -lm -lpthread

$(B)/weir: $(CLI_OBJ) $(CTRL_OBJ) $(B)/libweir.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@ $(LDLIBS) $(CURSES_LIBS)

$(CTRL_OBJ): | $(SKELS) $(PAGES)

# The dashboard's files as bytes, for dashboard.c to include.
$(B)/include/dashboard/%.inc: user/dashboard/%
	$(Q)mkdir -p $(@D) && od -An -v -tx1 $< | sed 's/ \(..\)/0x\1,/g' > $@

# Position-independent throughout: the same objects go into libweir.a and libweir.so.
$(B)/%.o: %.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(ALLFLAGS) -fPIC -c $< -o $@

$(B)/bpf/%.bpf.o: bpf/%.bpf.c
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(BPFFLAGS) -c $< -o $@

# The same programs on an injected clock; and drivers that kernel tests make packets with.
$(B)/bpf/weir_test.bpf.o: bpf/weir.bpf.c
	$(call say,BPF,$@)
	$(Q)mkdir -p $(@D) && $(CLANG) $(BPFFLAGS) -DWEIR_INJECTED_CLOCK -c $< -o $@

$(B)/bpf/%.bpf.o: tests/kernel/%.bpf.c
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(BPFFLAGS) -DWEIR_INJECTED_CLOCK -c $< -o $@

$(B)/include/%.skel.h: $(B)/bpf/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)mkdir -p $(@D) && $(BPFTOOL) gen skeleton $< name $*_bpf > $@

# Tools for tests and benchmarks: one file, one program.
$(B)/tests/%: tests/tools/%.c $(B)/libweir.a
	$(call say,TOOL,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALLFLAGS) -Itests $< $(B)/libweir.a -o $@ $(LDLIBS)

$(B)/tests/storm: | $(B)/include/storm.skel.h

# Unit tests: the sources they test are compiled again with the sanitizers.
$(B)/san/%.o: %.c
	$(call say,CC-SAN,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(ALLFLAGS) $(SAN) -Itests -c $< -o $@

# Of the CLI what needs neither a terminal nor a controller.
CLI_PURE := user/cli/log.c user/cli/output.c user/cli/top_layout.c user/cli/top_model.c

$(B)/san/libweir.a: $(patsubst %.c,$(B)/san/%.o,$(LIB_SRC) $(CTRL_SRC) $(CLI_PURE))
	$(call say,AR,$@)
	$(Q)mkdir -p $(@D) && rm -f $@ && ar rcs $@ $^

$(CTRL_SRC:%.c=$(B)/san/%.o) $(UNIT_SRC:%.c=$(B)/san/%.o): | $(SKELS) $(PAGES)

$(B)/tests/unit/%: $(B)/san/tests/unit/%.o $(B)/san/tests/harness.o $(B)/san/libweir.a
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(SAN) $^ -o $@ -lcunit $(LDLIBS)

$(B)/tests/kernel/%: $(B)/tests/kernel/%.o $(RIG_OBJ) $(B)/tests/harness.o $(CTRL_OBJ) \
		$(B)/libweir.a
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $^ -o $@ -lcunit $(LDLIBS)

$(KERNEL_SRC:%.c=$(B)/%.o) $(RIG_OBJ): CPPFLAGS += -Itests
$(KERNEL_SRC:%.c=$(B)/%.o) $(RIG_OBJ): | $(SKELS) $(TEST_SKELS)
$(B)/tests/kernel/test_commands: | $(B)/weir
$(B)/tests/harness.o: CPPFLAGS += -Itests

# The benchmarks: bench's programs include weir's own (bpf/*.bpf.h).
$(B)/bpf/%.bpf.o: tests/bench/%.bpf.c
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(BPFFLAGS) -c $< -o $@

$(BENCH_SRC:%.c=$(B)/%.o): CPPFLAGS += -Itests
$(BENCH_SRC:%.c=$(B)/%.o): | $(B)/include/bench.skel.h

$(B)/tests/bench/bench: $(BENCH_SRC:%.c=$(B)/%.o) $(CTRL_OBJ) $(B)/libweir.a
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $^ -o $@ $(LDLIBS)

bench: $(B)/tests/bench/bench
	$<

# libFuzzer targets: one file, one program, against the sources compiled by clang for it.
FUZZ := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=all

fuzz-targets: $(FUZZ_SRC:tests/fuzz/%.c=$(B)/fuzz/%)

# All of them for FUZZ_SECONDS=300 each.
fuzz:
	scripts/fuzz.sh

$(B)/fuzz/%.o: %.c
	$(call say,CC-FUZZ,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(ALLFLAGS) $(FUZZ) -Itests -c $< -o $@

$(B)/fuzz/libweir.a: $(LIB_SRC:%.c=$(B)/fuzz/%.o) $(CTRL_SRC:%.c=$(B)/fuzz/%.o)
	$(call say,AR,$@)
	$(Q)mkdir -p $(@D) && rm -f $@ && ar rcs $@ $^

$(CTRL_SRC:%.c=$(B)/fuzz/%.o): | $(SKELS) $(PAGES)

$(B)/fuzz/fuzz_%: $(B)/fuzz/tests/fuzz/fuzz_%.o $(B)/fuzz/libweir.a
	$(call say,LD,$@)
	$(Q)$(CLANG) $(FUZZ) -fsanitize=fuzzer $^ -o $@ $(LDLIBS)

# The analysers (scripts/analyse.sh) over what has changed since they found nothing in it.
STATIC_SRC := $(LIB_SRC) $(CTRL_SRC) $(CLI_SRC)

static: $(STATIC_SRC:%.c=$(B)/static/%.ok)

$(B)/static/%.ok: %.c .clang-tidy scripts/analyse.sh | $(SKELS)
	$(call say,STATIC,$<)
	$(Q)mkdir -p $(@D) && scripts/analyse.sh $< $(filter-out -MMD -MP,$(ALLFLAGS)) -Itests
	$(Q)$(CC) $(filter-out -MMD,$(ALLFLAGS)) -Itests -MM -MT $@ -MF $(@:.ok=.d) $< && touch $@

list-static:
	@printf '%s\n' $(STATIC_SRC)

include packaging/install.mk

test:
	scripts/test.sh

clean:
	rm -rf $(B)

# Not those of the trees that scripts/coverage.sh and scripts/soak.sh make.
-include $(shell find $(B) \( -path $(B)/coverage -o -path $(B)/soak \) -prune -o \
	-name '*.d' -print 2>/dev/null)
