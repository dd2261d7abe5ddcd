#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# weir try and weir suggest --pcap on a capture of known traffic; the weir that runs meanwhile
# neither notices nor changes.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317,SC2119
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"

# make_capture FILE: 10 s of raw IP, 20 sources of 50 packets a second and one of 1,000.
make_capture() {
  perl -e '
    my $header = sub { pack("CCnnnCCn", 0x45, 0, 28, 0, 0, 64, 17, 0) . pack("N", $_[0]) .
      pack("N", 0xc0000201) . pack("nnnn", 4000, 53, 8, 0) };
    binmode STDOUT;
    print pack("VvvVVVV", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 101);
    for my $ms (0 .. 9999) {
      my @from = (0x0a090909);
      push @from, map { 0x0a000001 + $_ } 0 .. 19 if $ms % 20 == 0;
      print pack("VVVV", 1700000000 + int($ms / 1000), $ms % 1000 * 1000, 28, 28), $header->($_)
        for @from;
    }' >"$1"
}

of() {
  jq -r "$1" "$LAB_DIR/answer"
}

test_try() {
  weir try "$LAB_DIR/capture" -c "$LAB_DIR/try.yaml" -j --top 3 >"$LAB_DIR/answer" ||
    fail "weir try" "exit $?"
  expect_equal "packets" "$(of .packets)" 20000
  # 200 a second and 200 at once, of 1,000 a second in 9.999 s.
  expect_equal "refused" "$(of '.limits[0].refused')" $((10000 - 200 - 1999))
  expect_equal "by whom" "$(of '.keys | map(.key) | join(" ")')" 10.9.9.9
  # jq counts in doubles: not to the nanosecond.
  expect_between "from when on, ns" "$(of '.limits[0].first_refused_ns - .first_ns')" 248900000 \
    249100000
  expect_equal "gates are left out" "$(of '.left_out | map(.name) | join(" ")')" conns
  expect_exit "as text" 0 "10.9.9.9" weir try "$LAB_DIR/capture" -c "$LAB_DIR/try.yaml"
  expect_exit "all go out, where no limit is" 0 "0 in, 20000 out; 0 refused" \
    weir try "$LAB_DIR/capture" -c "$LAB_DIR/try.yaml" --address 10.0.0.0/8
  # From stdin, and cut off.
  head -c 30000 "$LAB_DIR/capture" | weir try - -c "$LAB_DIR/try.yaml" -j >"$LAB_DIR/answer"
  expect_equal "from stdin, the end is missing" "$(of .cut_short)" true
}

test_suggest() {
  weir suggest --pcap "$LAB_DIR/capture" -c "$LAB_DIR/try.yaml" -j >"$LAB_DIR/answer" ||
    fail "weir suggest --pcap" "exit $?"
  expect_equal "sources" "$(of '.limits[0].sources')" 21
  expect_between "50% send at most" "$(of '.limits[0].rates[0].per_sec')" 50 55
  expect_between "the greatest" "$(of '.limits[0].rates[4].per_sec')" 1000 1001
}

test_errors() {
  expect_exit "no capture" 1 "it is no capture" weir try "$CONFIG" -c "$LAB_DIR/try.yaml"
  expect_exit "no file" 1 "nowhere: No such file" weir try nowhere -c "$LAB_DIR/try.yaml"
  expect_exit "no such interface" 1 "--interface 'eth9': $LAB_DIR/try.yaml has eth0" \
    weir try "$LAB_DIR/capture" -c "$LAB_DIR/try.yaml" --interface eth9
  expect_exit "no address" 1 "--address: " weir try "$LAB_DIR/capture" -c "$LAB_DIR/try.yaml" \
    --address 10.0.0.1/33
  expect_exit "no capture, but what goes with one" 64 "give its --pcap" \
    weir suggest -c "$LAB_DIR/try.yaml"
  expect_exit "no count" 64 "--top '0'" weir try "$LAB_DIR/capture" --top 0
  expect_exit "not without the rights" 2 "takes root, or CAP_BPF" \
    setpriv --bounding-set -all --inh-caps -all --reuid 65534 --clear-groups \
    "$WEIR" try "$LAB_DIR/capture" -c "$LAB_DIR/try.yaml"
}

# Of the weir that runs: its limit, its pins, its program. Of its counts to tens: the kernel sends a
# frame or two of its own on a veth, a replay would be thousands.
state() {
  json '.limits[0] | .settings, .mode, (.admitted / 10 | floor), .refused' show
  ls "$WEIR_PINS"
  xdp_id
}

weir_lab 1
write_config 1000pps 1000
start_weir
make_capture "$LAB_DIR/capture"
cat >"$LAB_DIR/try.yaml" <<'END'
version: 1
interfaces: [{name: eth0}]
limits:
  - {name: per-ip, key: source, bucket: {rate: 200pps, burst: 200}}
  - {name: conns, key: source, match: {proto: tcp, to_port: 443}, gate: {limit: 5}}
END
chmod a+rx "$LAB_DIR"
before=$(state)
test_try
test_suggest
test_errors
expect_equal "the weir that runs is as it was" "$(state)" "$before"
finish
