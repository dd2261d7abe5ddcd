#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# /metrics: what it says is what weir show says, what the docs and the rules name is what it says,
# a real Prometheus takes it, no flood makes series, bad clients and a taken port cost no limit.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"
# shellcheck source-path=SCRIPTDIR source=http.sh
. "$(dirname "$0")/http.sh"

RULES=$LAB_ROOT/packaging/prometheus/weir.rules.yml
GRAFANA=$LAB_ROOT/packaging/grafana/weir.json
DOC=$LAB_ROOT/docs/metrics.md

# What is written of each metric in the docs: name, type, labels.
documented() {
  awk -F ' *[|] *' '/^\| `/ { gsub(/`/, "", $2); gsub(/ /, "", $4); print $2, $3, $4 }' "$DOC" |
    sed 's/ $//' | sort
}

# The same of what is on stdin; a metric without a sample has no labels.
exported() {
  awk '
    /^# TYPE/ { type[$3] = $4; next }
    /^#/ { next }
    {
      name = $1; labels = ""
      if (i = index(name, "{")) { labels = substr(name, i); name = substr(name, 1, i - 1) }
      gsub(/="([^"\\]|\\.)*"/, "", labels); gsub(/[{}]/, "", labels)
      if (!(name in type)) { sub(/_(bucket|sum|count)$/, "", name); sub(/,le$/, "", labels) }
      found[name] = labels
    }
    END { for (name in type) print name, type[name] (found[name] == "" ? "" : " " found[name]) }' |
    sort
}

# Lines without their values.
series() {
  fetch /metrics | grep -v '^#' | sed 's/ [^ ]*$//' | sort
}

# Names of metrics in the rules and the dashboard, as the exporter has them.
named_in_packaging() {
  grep -ohE '\b(weir|process)_[a-z_]+\b' "$RULES" "$GRAFANA" | sed 's/_seconds_bucket$/_seconds/' |
    sort -u
}

test_what_it_says() {
  local text refused

  expect_equal "it is on without a word in the file" "$(status /metrics)" 200
  start_flood flood 2 "to=$LAB_SERVER4,from=10.78.0.1,rate=5000"
  await flood
  weir report app fail >/dev/null
  weir report app pass rt=5ms >/dev/null
  weir report nobody pass >/dev/null 2>&1
  sleep 1.2 # a window of the governor, and a page is half a second old
  text=$(fetch /metrics)
  check "promtool finds nothing to say" test -z "$(promtool check metrics <<<"$text" 2>&1)"
  refused=$(json '.limits[] | select(.name == "per-ip") | .refused' show)
  expect_between "a flood was refused" "$refused" 1000 10000
  expect_equal "refused is what weir show says" \
    "$(metric 'weir_limit_refused_packets_total{limit="per-ip"}')" "$refused"
  expect_equal "so is what passed" "$(metric 'weir_limit_admitted_packets_total{limit="per-ip"}')" \
    "$(total admitted)"
  expect_equal "and by interface" "$(metric \
    "weir_interface_packets_total{interface=\"$LAB_IF_S\",hook=\"xdp\",path=\"refused\"}")" \
    "$(json '.interfaces[0].traffic.xdp.refused.packets' show)"
  expect_equal "lists" "$(metric 'weir_list_prefixes{list="deny",family="ipv6"}')" 1
  expect_equal "a service" "$(metric 'weir_service_failed_total{service="app"}')" 1
  weir freeze app >/dev/null
  sleep 0.6
  expect_equal "G11: the offer is what weir show says" \
    "$(metric 'weir_service_governor_offer{service="app",limit="udp-rate"}')" \
    "$(json '.services[0].governor.offer | floor' show app)"
  expect_equal "and frozen" \
    "$(metric 'weir_service_loop_frozen{service="app",loop="governor"}')" 1
  weir thaw app >/dev/null
  expect_equal "the documented metrics are there, and no others" \
    "$(diff <(documented) <(fetch /metrics | exported))" ""
  expect_between "the test read the docs" "$(documented | wc -l)" 50 100
}

test_packaging() {
  check "rules" promtool check rules "$RULES"
  check "rules fire on their fault alone" \
    promtool test rules "$LAB_ROOT/tests/prometheus/rules.test.yml"
  check "the Grafana dashboard is JSON with panels" jq -e '.panels | length > 10' "$GRAFANA"
  expect_equal "rules and dashboard name what there is" \
    "$(comm -23 <(named_in_packaging) <(fetch /metrics | awk '/^# TYPE/ { print $3 }' | sort))" ""
  expect_between "the test read them" "$(named_in_packaging | wc -l)" 25 100
}

# query EXPRESSION: its first value in the Prometheus of this test.
query() {
  in_ns s curl -s -G --data-urlencode "query=$1" http://127.0.0.1:9490/api/v1/query |
    jq -r '.data.result[0].value[1] // "none"'
}

query_is() {
  [ "$(query "$1")" = "$2" ]
}

test_real_prometheus() {
  cat >"$LAB_DIR/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [$RULES]
scrape_configs:
  - job_name: weir
    static_configs: [{targets: ["127.0.0.1:9477"]}]
END
  spawn prometheus s prometheus --config.file="$LAB_DIR/prometheus.yml" \
    --storage.tsdb.path="$LAB_DIR/tsdb" --web.listen-address=127.0.0.1:9490 --log.level=warn
  check "Prometheus scrapes it" wait_for 60 query_is 'up{job="weir"}' 1
  expect_equal "and has what weir has" \
    "$(query 'weir_limit_refused_packets_total{limit="per-ip"}')" "$(total refused)"
  expect_equal "every rule was evaluated without an error" "$(in_ns s curl -s \
    http://127.0.0.1:9490/api/v1/rules |
    jq '[.data.groups[].rules[] | .health == "ok"] | all')" true
  # Two scrapes after a refused reload the counter has moved.
  cp "$CONFIG" "$LAB_DIR/good.yaml"
  echo "limits: nonsense" >>"$CONFIG"
  weir reload >/dev/null 2>&1
  cp "$LAB_DIR/good.yaml" "$CONFIG"
  check "an alert fires" wait_for 60 query_is \
    'count(ALERTS{alertname="WeirReloadRefused", alertstate="firing"})' 1
  stop prometheus
}

# U9: labels have no bounds.
test_flood_makes_no_series() {
  local before known

  before=$(series)
  # Each address sends two packets: 100,000 of them in 5 s.
  start_flood many 5 "to=$LAB_SERVER4,from=10.78.0.0,sources=50000,rate=20000" \
    "to=$LAB_SERVER6,from=fd78::1,sources=50000,shift=64,rate=20000"
  await many
  sleep 0.6
  known=$(metric 'weir_limit_new_keys_total{limit="per-ip"}')
  expect_between "U9: sources were seen" "$known" 50000 200000
  expect_equal "U9: not one series more" "$(diff <(echo "$before") <(series))" ""
}

# made PATH FILTER: of 2000 requests in a row, how many different answers there were, and within
# how many half seconds.
made() {
  local start different

  start=$(date +%s%N)
  different=$(in_ns s curl -s --max-time 60 "$METRICS$1?[1-2000]" |
    jq -cs "map($2) | unique | length")
  echo "$different $((($(date +%s%N) - start) / 500000000))"
}

# However many ask: a walk through the ledger is no request's own.
test_pages_are_made_at_a_pace() {
  local different halves

  start_flood flood 60 "to=$LAB_SERVER4,from=10.78.0.1,rate=5000"
  wait_for 10 eval 'fetch /api/top | jq -e ".keys | length > 0" >/dev/null'
  read -r different halves < <(made /api/show .time_ns)
  expect_between "reports: at most two a second" "$different" 1 $((halves + 2))
  read -r different halves < <(made /api/top .keys)
  expect_between "the heaviest keys: at most one a second" "$different" 1 $((halves / 2 + 2))
  stop flood
}

rss_kb() {
  awk '/^VmRSS/ { print $2 }' "/proc/${LAB_PID[weir]}/status"
}

# milliseconds COMMAND...
milliseconds() {
  local start

  start=$(date +%s%N)
  "$@" >/dev/null 2>&1
  echo $((($(date +%s%N) - start) / 1000000))
}

# test_crowd MANNER COUNT [PATH]: meanwhile the limit, the control socket and a scrape are looked
# at. Alone weir show takes 10 ms; the bounds are for a machine that does much else.
test_crowd() {
  local before refused worst=0 took

  before=$(rss_kb)
  refused=$(total refused)
  spawn crowd s "$LAB_TOOLS/crowd" --to 127.0.0.1 --port 9477 --count "$2" --seconds 6 \
    --manner "$1" --path "${3:-/metrics}"
  check "$1: begun" wait_for 10 grep -q ready "$LAB_DIR/crowd.out"
  start_flood flood 2 "to=$LAB_SERVER4,from=10.78.0.9,rate=5000"
  for _ in 1 2 3 4 5; do
    took=$(milliseconds weir show)
    [ "$took" -le "$worst" ] || worst=$took
    sleep 0.2
  done
  await flood
  expect_between "$1: weir show answers meanwhile (ms)" "$worst" 0 1000
  expect_between "$1: the limit holds meanwhile" $(($(total refused) - refused)) 6000 10000
  expect_equal "$1: a scrape comes through" "$(in_ns s curl -s --max-time 20 -o /dev/null \
    -w '%{http_code}' "$METRICS/metrics")" 200
  await crowd
  expect_between "$1: memory (KB)" $(($(rss_kb) - before)) -100000 20000
  echo "   $1: weir show took $worst ms at most, memory grew by $(($(rss_kb) - before)) KB," \
    "$(tail -n 1 "$LAB_DIR/crowd.out")"
  check "$1: all connections are given back" wait_for 10 connections_are_few
}

connections_are_few() {
  [ "$(metric weir_http_connections)" = 1 ]
}

# What is in the way of both: the heaviest keys of a large ledger, asked for without a pause.
test_crowds() {
  test_crowd idle 1000
  test_crowd trickle 1000
  test_crowd deaf 400
  test_crowd eager 100 /api/top
}

log_has() {
  grep -q "$1" "$LAB_DIR/weir.err"
}

test_listener_follows_the_file() {
  echo 'metrics: {listen: "[::1]:9478"}' >>"$CONFIG"
  check "reload to another address" weir reload
  METRICS="http://[::1]:9478"
  expect_equal "it is there" "$(status /metrics)" 200
  METRICS=http://127.0.0.1:9477
  expect_equal "and no longer here" "$(status /metrics)" 000
  sed -i 's/^metrics:.*/metrics: {listen: nowhere}/' "$CONFIG"
  expect_exit "a bad address refuses the reload" 1 "'nowhere' is not an address and port" \
    weir reload
  METRICS="http://[::1]:9478"
  expect_equal "which leaves it where it was" "$(status /metrics)" 200
  sed -i 's/^metrics:.*/metrics: {listen: off}/' "$CONFIG"
  check "off" weir reload
  expect_equal "nobody is there" "$(in_ns s ss -Hltn 'sport = :9477 or sport = :9478')" ""
  sed -i 's/^metrics:.*/metrics: {listen: 127.0.0.1:9477}/' "$CONFIG"
  check "on" weir reload
  METRICS=http://127.0.0.1:9477
  sed -i 's/^metrics:.*/metrics: {listen: 0.0.0.0:9477}/' "$CONFIG"
  check "to all addresses of the same port" weir reload
  expect_equal "from elsewhere too" "$(in_ns c curl -s --max-time 10 -o /dev/null \
    -w '%{http_code}' "http://$LAB_SERVER4:9477/metrics")" 200
  check "which is said" log_has "0.0.0.0:9477/: whoever reaches this address"
}

test_hosts() {
  expect_equal "a strange name is refused" "$(status / -H 'Host: weir.example')" 403
  sed -i 's/^metrics:.*/metrics: {hosts: [weir.example]}/' "$CONFIG"
  weir reload >/dev/null
  expect_equal "one of metrics.hosts is not" "$(status / -H 'Host: weir.example:9477')" 200
  expect_equal "but others are" "$(status / -H 'Host: evil.example')" 403
  sed 's/weir.example/"weir.example:80"/' "$CONFIG" >"$LAB_DIR/bad.yaml"
  expect_exit "a bad name is refused" 1 "'weir.example:80' can't be used" \
    weir check "$LAB_DIR/bad.yaml"
  sed -i 's/^metrics:.*/metrics: {dashboard: false}/' "$CONFIG"
  weir reload >/dev/null
  expect_equal "without the dashboard there are metrics" "$(status /metrics)" 200
  expect_equal "no page" "$(status /)" 404
  expect_equal "and no addresses" "$(status /api/top) $(status /api/show)" "404 404"
  sed -i 's/^metrics:.*/metrics: {hosts: [weir.example]}/' "$CONFIG"
  weir reload >/dev/null
  check "weir check prints it" grep -q 'hosts: \["weir.example"\]' <(weir check "$CONFIG")
}

# take_port PORT: a strange server on it.
take_port() {
  spawn taker s "$LAB_TOOLS/sink" --port "$1" --only tcp
  wait_for 5 grep -q ready "$LAB_DIR/taker.out"
}

test_taken_port() {
  local refused

  or_give_up take_port 9477
  start_weir
  check "a taken port is said" log_has "metrics.listen '127.0.0.1:9477': another program has this"
  start_flood flood 1 "to=$LAB_SERVER4,from=10.78.0.20,rate=5000"
  refused=$(total refused)
  await flood
  expect_between "and costs no limit" $(($(total refused) - refused)) 2000 5000
  sleep 6
  expect_equal "U8: said once, however often it is tried" \
    "$(grep -c "another program has this" "$LAB_DIR/weir.err")" 1
  stop taker
  check "it is taken as soon as it is free" wait_for 15 serves
  or_give_up take_port 9479
  sed -i 's/^metrics:.*/metrics: {listen: 127.0.0.1:9479}/' "$CONFIG"
  check "a reload to a taken port" weir reload
  check "leaves it where it was" serves
  check "and is said" log_has "metrics stay where they were: metrics.listen '127.0.0.1:9479'"
  stop taker
}

need curl
need prometheus
weir_lab 4
write_everything ""
start_weir
test_what_it_says
test_packaging
test_real_prometheus
test_flood_makes_no_series
test_pages_are_made_at_a_pace
test_crowds
test_listener_follows_the_file
test_hosts
weir stop --detach >/dev/null
await weir
test_taken_port
weir stop --detach >/dev/null
finish
