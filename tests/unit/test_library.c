// SPDX-License-Identifier: GPL-2.0
/*
 * The library as others get it: its headers in every language they promise, what libweir.so
 * exports, the installed files, the document's examples, the table of names. Run from the
 * repository root, after `make lib`.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define HEADERS                                                                                    \
	"api backoff breaker bucket deadline gate governor period shedder sliding window weir"
#define EXPORTS                                                                                    \
	"awk '/^\\tweir_/ { sub(/;/, \"\"); print $1 }' user/lib/libweir.map | sort > $work/map; "
#define SHARED "bucket sliding period gate" /* with BPF */

static bool runs(const char *command)
{
	char whole[4096], line[1024];
	FILE *pipe;
	bool ok;

	snprintf(whole, sizeof(whole),
		 "set -e; exec 2>&1; work=$(mktemp -d); "
		 "trap 'rm -rf $work' EXIT; %s",
		 command);
	pipe = popen(whole, "r");
	if (!pipe)
		return false;
	while (fgets(line, sizeof(line), pipe))
		printf("%s%s", strncmp(line, "skip ", 5) ? "  " : "", line);
	ok = pclose(pipe) == 0;
	return ok;
}

static void headers_stand_alone_in_c11(void)
{
	CU_ASSERT_TRUE(runs("for h in " HEADERS "; do echo \"#include \\\"weir/$h.h\\\"\" | "
			    "cc -std=c11 -pedantic -Wall -Wextra -Wshadow -Werror -Iinclude "
			    "-fsyntax-only -x c -; done"));
}

static void headers_stand_alone_in_cxx(void)
{
	CU_ASSERT_TRUE(runs("for h in " HEADERS "; do echo \"#include \\\"weir/$h.h\\\"\" | "
			    "$(command -v c++ || command -v clang++) -std=c++11 -pedantic -Wall "
			    "-Wextra -Werror -Iinclude "
			    "-fsyntax-only -x c++ -; done"));
}

/* Every function of the cores is called, so that the verifier's rules meet real code. */
static void cores_compile_for_bpf(void)
{
	CU_ASSERT_TRUE(
		runs("command -v clang >/dev/null || { echo skip library/cores_compile_for_bpf: no "
		     "clang; exit 0; }; "
		     "for h in " SHARED "; do echo \"#include \\\"weir/$h.h\\\"\"; done "
		     "> $work/core.c; cat tests/unit/core-bpf.inc >> $work/core.c; "
		     "clang -target bpf -mcpu=v3 -ffreestanding -O2 -std=gnu11 -Wall -Wextra "
		     "-Werror -Iinclude -c $work/core.c -o $work/core.o"));
}

static void exports_what_the_map_says(void)
{
	CU_ASSERT_TRUE(runs(EXPORTS "nm -D --defined-only build/libweir.so | "
				    "awk '$2 != \"A\" { sub(/@.*/, \"\", $3); print $3 }' | "
				    "sort > $work/so; diff $work/map $work/so"));
}

/* What the headers declare is exported, and no more. */
static void exports_what_the_headers_declare(void)
{
	CU_ASSERT_TRUE(runs(
		"for h in " HEADERS "; do echo \"#include \\\"weir/$h.h\\\"\"; done | "
		"cc -Iinclude -E -P -x c - | tr -d '\\n' | sed 's/[;}]/&\\n/g' | "
		"grep -v 'static inline' | grep -oE '(weir_[a-z_]+\\(|weir_[a-z]+;)' | "
		"tr -d '(;' | sort -u > $work/declared; " EXPORTS
		"comm -13 $work/declared $work/map > $work/extra; "
		"[ ! -s $work/extra ] || { echo exported, not declared:; cat $work/extra; exit 1; "
		"}; "
		"for name in $(grep -E '_(new|free|take|next|left|init|start|pass|fail|tick)$' "
		"$work/declared); do grep -qx $name $work/map || "
		"{ echo declared, not exported: $name; exit 1; }; done"));
}

static void installs_and_links_by_pkg_config(void)
{
	CU_ASSERT_TRUE(runs(
		"make -s install-lib DESTDIR=$work PREFIX=/usr LIBDIR=lib > /dev/null; "
		"printf '#include <weir/weir.h>\\nint main(void) { struct weir_gate g = "
		"weir_gate_new(1); return !weir_gate_enter(&g); }\\n' > $work/use.c; "
		"export PKG_CONFIG_PATH=$work/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work; "
		"cc $work/use.c $(pkg-config --cflags --libs weir) -o $work/use; "
		"LD_LIBRARY_PATH=$work/usr/lib $work/use; "
		"cc $work/use.c $(pkg-config --cflags weir) $work/usr/lib/libweir.a -lm -o "
		"$work/use; "
		"$work/use; readelf -d $work/usr/lib/libweir.so | grep -q 'SONAME.*libweir.so.0'"));
	CU_ASSERT_TRUE(runs("make -s build/weir.pc > /dev/null"));
}

static void examples_of_the_document_run(void)
{
	CU_ASSERT_TRUE(runs("scripts/doc-examples.sh"));
}

static void table_of_names_is_whole_and_current(void)
{
	CU_ASSERT_TRUE(runs("scripts/api-table.sh --check"));
	CU_ASSERT_TRUE(runs("WEIR_SEEDS=/nonexistent scripts/api-table.sh --check"));
}

/* The check can fail: without one tag, with one too many, with a table of yesterday. */
static void table_check_sees_what_is_missing(void)
{
	static const char *const breaks[] = {
		"sed -i '/seed: Bucket::take/d' include/weir/bucket.h",
		"sed -i 's/seed: Sre.k;/k;/' include/weir/breaker.h",
		"sed -i 's/seed: Gate::held/seed: Gate::hold/' include/weir/gate.h",
		"sed -i 's/weir_gate_held/weir_gate_inside/' include/weir/gate.h",
		"sed -i '/weir_window_slot/d' user/lib/libweir.map",
		"sed -i '/memory_clear_step/d' docs/api-table.md; echo >> docs/api-table.md",
	};

	for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
		char command[2048];

		snprintf(command, sizeof(command),
			 "cp -r include user docs scripts $work; seeds=../shared/seeds; "
			 "[ -d $seeds ] || seeds=/work/shared/seeds; seeds=$(realpath -m $seeds); "
			 "cd $work; %s; ! WEIR_SEEDS=$seeds scripts/api-table.sh --check > "
			 "/dev/null 2>&1",
			 breaks[i]);
		CU_ASSERT_TRUE(runs(command));
	}
}

WEIR_TESTS("library", TEST(headers_stand_alone_in_c11), TEST(headers_stand_alone_in_cxx),
	   TEST(cores_compile_for_bpf), TEST(exports_what_the_map_says),
	   TEST(exports_what_the_headers_declare), TEST(installs_and_links_by_pkg_config),
	   TEST(examples_of_the_document_run), TEST(table_of_names_is_whole_and_current),
	   TEST(table_check_sees_what_is_missing))
