#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Compile and run every ```c block of docs/library.md: as C11 against build/libweir.a, as C++17
# against build/libweir.so. Run from the repository root, after `make lib`.
set -eu

doc=docs/library.md
cxx=$(command -v c++ || command -v clang++)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The first fence is the prelude; each ```c block goes into a file of its own behind it.
awk -v work="$work" '
	/^```$/ && !prelude_done && !open { open = 1; out = work "/prelude"; next }
	/^```c$/ { open = 1; out = sprintf("%s/example%02d.c", work, ++count); next }
	/^```$/ { open = 0; prelude_done = 1; next }
	open { print > out }
' "$doc"

count=0
for body in "$work"/example*.c; do
	name=$(basename "$body" .c)
	{
		cat "$work/prelude"
		echo "void example(void);"
		cat "$body"
		echo "int main(void) { example(); return 0; }"
	} > "$work/full.c"
	cc -std=c11 -pedantic -Wall -Wextra -Werror -Iinclude "$work/full.c" build/libweir.a -lm \
		-o "$work/$name-c"
	"$cxx" -x c++ -std=c++17 -pedantic -Wall -Wextra -Werror -Iinclude "$work/full.c" -x none \
		-Lbuild -lweir -Wl,-rpath,"$PWD/build" -o "$work/$name-c++"
	for program in "$work/$name-c" "$work/$name-c++"; do
		"$program" && continue
		echo "$doc: $program failed; its text is:" >&2
		cat "$body" >&2
		exit 1
	done
	count=$((count + 1))
done
echo "$count examples compiled and run, as C and as C++"
[ "$count" -ge 11 ]
