#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The references' entries and their C names, from the `seed:` tags in include/weir/*.h.
#
#	api-table.sh		write docs/api-table.md
#	api-table.sh --check	fail if an entry has no C name, a C function or preset is not in
#				libweir.map, or the table is not current
#
# The entries come from the references (WEIR_SEEDS, default ../shared/seeds or
# /work/shared/seeds); where they aren't there, from the committed table.
set -eu

table=docs/api-table.md
seeds=${WEIR_SEEDS:-../shared/seeds}
[ -n "${WEIR_SEEDS:-}" ] || [ -d "$seeds" ] || seeds=/work/shared/seeds
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Types, their fields, cases and functions, presets: one a line, in the reference's order.
entries_of_moonward() {
	awk -F '\t' '
		{ line[NR] = $0 }
		END {
			for (i = 1; i <= NR; i++) {
				if (line[i] ~ /^[A-Z][A-Za-z]*$/ &&
				    line[i + 2] ~ /^(struct|enum)/) {
					type = line[i]
					cases = line[i + 2] ~ /^enum/
					print type
				} else if (cases && line[i] ~ /^[A-Z][a-z]*(\(Double\))?$/) {
					sub(/\(.*/, "", line[i])
					print type "::" line[i]
				} else if (line[i] ~ /^pub fn/) {
					sub(/^pub fn(\[[^]]*\])? /, "", line[i])
					sub(/\(.*/, "", line[i])
					print line[i]
				} else if (line[i] ~ /^preset let /) {
					split(line[i], word, " ")
					print word[3]
				}
				if (line[i] == "")
					fields = 0
				else if (line[i] ~ /^field\ttype\t/)
					fields = 1
				else if (fields) {
					split(line[i], part, "`")
					print type "." part[2]
				}
			}
		}' "$seeds/moonward-api.txt"
}

entries_of_governor() {
	awk '/^(Structs|Enums|Constants|Functions)$/ { on = 1; next }
	     on && /^[A-Za-z_]+$/' "$seeds/throttle-governor.txt"
}

entries() {
	if [ -d "$seeds" ]; then
		entries_of_moonward
		entries_of_governor
	else
		awk -F '`' '/^\| `/ { print $2 }' "$table"
	fi
}

# "entry<TAB>C name<TAB>header", from the tags.
names() {
	awk '
		function declared(text) {
			if (match(text, /weir_[a-z0-9_]+\(/))
				return substr(text, RSTART, RLENGTH - 1) "()"
			if (match(text, /^(struct|enum) weir_[a-z0-9_]+/))
				return substr(text, RSTART, RLENGTH)
			if (match(text, /^#define WEIR_[A-Z0-9_]+/))
				return substr(text, RSTART + 8, RLENGTH - 8)
			if (match(text, /weir_[a-z0-9_]+;/))
				return substr(text, RSTART, RLENGTH - 1)
			if (match(text, /WEIR_[A-Z0-9_]+/))
				return substr(text, RSTART, RLENGTH)
			if (match(text, /[a-z0-9_]+;/))
				return within "." substr(text, RSTART, RLENGTH - 1)
			return ""
		}
		function put(entry, text) {
			header = FILENAME
			sub(/.*\//, "", header)
			printf "%s\t%s\t%s\n", entry, declared(text), header
		}
		{
			code = $0
			sub(/\/\*.*/, "", code)
			is_code = code !~ /^[ \t]*(\*.*)?$/
			if (is_code && match(code, /^struct weir_[a-z0-9_]+ \{/))
				within = substr(code, 8, RLENGTH - 9)
			if (is_code && pending != "") {
				put(pending, code)
				pending = ""
			}
			if (match($0, /seed: [A-Za-z_:.]+/)) {
				entry = substr($0, RSTART + 6, RLENGTH - 6)
				if (is_code)
					put(entry, code)
				else
					pending = entry
			}
		}' include/weir/*.h
}

write_table() {
	cat <<-'HEAD'
	# The references' entries and their C names

	Written by `scripts/api-table.sh` from the `seed:` tags in `include/weir`; don't edit. Each
	header says what an entry means in C, its units, defaults and errors.

	| reference | C | header |
	|---|---|---|
	HEAD
	awk -F '\t' 'NR == FNR { row[$1] = "| `" $1 "` | `" $2 "` | " $3 " |"; next }
		{ print row[$1] }' "$work/names" "$work/entries"
}

names > "$work/names"
entries > "$work/entries"
missing=$(awk -F '\t' 'NR == FNR { known[$1] = $2; next } !known[$1]' "$work/names" "$work/entries")
if [ -n "$missing" ]; then
	echo "api-table: no C name is tagged (seed: …) in include/weir for:" >&2
	echo "$missing" >&2
	exit 1
fi
stray=$(awk -F '\t' 'NR == FNR { known[$1] = 1; next } !known[$1] { print $1 }' \
	"$work/entries" "$work/names")
if [ -n "$stray" ]; then
	echo "api-table: tagged in include/weir, but no entry of a reference:" >&2
	echo "$stray" >&2
	exit 1
fi
write_table > "$work/table"
if [ "${1:-}" != --check ]; then
	cp "$work/table" "$table"
	exit
fi
awk -F '\t' '$2 ~ /^weir_[a-z_]+(\(\))?$/ { sub(/\(\)/, "", $2); print $2 }' "$work/names" \
	> "$work/exported"
while read -r name; do
	grep -q "^	$name;$" user/lib/libweir.map ||
		{ echo "api-table: $name is not in user/lib/libweir.map" >&2; exit 1; }
done < "$work/exported"
cmp -s "$work/table" "$table" ||
	{ echo "api-table: $table is not current: run scripts/api-table.sh" >&2; exit 1; }
echo "$(wc -l < "$work/entries") entries, each with its C name"
