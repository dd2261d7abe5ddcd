#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The dashboard in a real browser: what is on it, not its pixels. A screenshot for people is left
# in build/dashboard-*.png.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"
# shellcheck source-path=SCRIPTDIR source=http.sh
. "$(dirname "$0")/http.sh"

# A name that the kernel and YAML take, and that HTML must not see.
HOSTILE='"><u>&'
FILLED='document.querySelector("#keys-table tbody th") !== null && samples.length > 1'

# browse [OPTION...] URL [EXPRESSION...]: lines of JSON into the array `seen`.
browse() {
  local code=0

  in_ns s timeout 100 "$LAB_TOOLS/browser" --seconds 80 "$@" >"$LAB_DIR/browser.out" \
    2>"$LAB_DIR/browser.err" || code=$?
  mapfile -t seen <"$LAB_DIR/browser.out"
  [ "$code" = 0 ] || fail "the browser" "exit $code: $(grep '^browser:' "$LAB_DIR/browser.err")"
  [ "${#seen[@]}" != 0 ] || seen=("")
}

no_problems() {
  expect_equal "$1: no error, no blocked content, nothing from elsewhere" "${seen[-1]:0:400}" \
    '{"problems":[]}'
}

# cells TABLE ROW-HEAD: an expression, the row's cells by their columns' heads.
cells() {
  echo "(() => { const t = document.querySelector('#$1');
    const r = [...t.tBodies[0].rows].find((r) => r.cells[0].textContent === '$2');
    return r && Object.fromEntries([...r.cells].map((c, i) =>
      [t.tHead.rows[0].cells[i].textContent, c.textContent])); })()"
}

# of INDEX FILTER: what jq finds in a line that was seen; figures without their commas.
of() {
  jq -r "$2" <<<"${seen[$1]:-null}" | tr -d ,
}

# The figures of a second in which the flood kept its pace: on a busy machine it stands still now
# and then. After 40 s those of any.
CALM="new Promise((done) => {
  const end = Date.now() + 40000, near = (figure, wanted) =>
    Math.abs(String(figure).replaceAll(',', '') / wanted - 1) < 0.1;
  const timer = setInterval(() => {
    const chart = samples[samples.length - 1];
    const limit = $(cells limits-table per-ip), key = $(cells keys-table 10.78.0.1);
    const calm = near(chart.passed, 1000) && near(limit['Passed/s'], 1000) &&
      [chart.refused, limit['Refused/s'], key['Refused/s']].every((rate) => near(rate, 4000));
    if (calm || Date.now() > end) { clearInterval(timer); done({ limit, key, chart }); }
  }, 100); })"

# The governor climbs twice a second and the table has its newest 20 moves: the service goes on
# failing however long the browser takes to start.
test_content() {
  # shellcheck disable=SC2016 # the inner shell expands it
  spawn app s sh -c 'while "$0" report app fail; do sleep 1; done' "$WEIR"
  browse --wait "$FILLED && /attempt failures/.test(find('moves-table').textContent)" \
    --screenshot "$LAB_ROOT/build/dashboard-wide.png" "$METRICS/" \
    "$CALM" "$(cells limits-table udp-rate)" "$(cells services-table app)" \
    "[...document.querySelectorAll('#moves-table tbody tr')].map((r) => r.innerText)" \
    "document.querySelectorAll('#timeline polyline').length" \
    "document.querySelector('#timeline-words').textContent" \
    "document.querySelector('#chart .refused').points.length" \
    "document.querySelector('#facts').innerText" "document.querySelector('#state').textContent" \
    "[...document.querySelectorAll('#events-table td')].map((c) => c.textContent)"
  expect_between "a limit passes (1/s)" "$(of 0 '.limit["Passed/s"]')" 900 1100
  expect_between "a limit refuses (1/s)" "$(of 0 '.limit["Refused/s"]')" 3600 4400
  expect_equal "its setting" "$(of 0 .limit.Setting)" "bucket rate 1000pps burst 1000"
  # Of a second that two walks of the ledger bound, not to the packet.
  expect_between "the heaviest key (1/s)" "$(of 0 '.key["Refused/s"]')" 3600 4400
  expect_between "the chart: refused (1/s)" "$(of 0 .chart.refused)" 3600 4400
  expect_between "the chart: passed (1/s)" "$(of 0 .chart.passed)" 900 1100
  expect_equal "another limit" "$(of 1 .Mode)" enforce
  expect_equal "a service" "$(of 2 '.Failed == .Attempts and .Attempts != "0"')" true
  expect_equal "its governor" "$(of 2 '.Governor | test("udp-rate .* packets/s, ")')" true
  expect_equal "a movement, with its signal" \
    "$(of 3 '[.[] | test("app\tgovernor\t.*attempt failures")] | any')" true
  expect_between "lanes on the time line" "$(of 4 .)" 1 3
  expect_equal "and their words" "$(of 5 'test("app governor moved [0-9]+ times")')" true
  expect_between "the chart has a line" "$(of 6 .)" 2 300
  expect_equal "the ledger" "$(of 7 'test("Ledger held\n")')" true
  expect_equal "the state" "$(of 8 .)" live
  expect_equal "an event" "$(of 9 '[.[] | test("^limit per-ip: new")] | any')" true
  no_problems content
  stop app
}

# Whatever a text says, it stays text.
test_hostile_text() {
  local evil='<img src=x onerror=\"window.hit=1\"><script>window.hit=1</script>' zero

  zero='{ packets: 0, bytes: 0 }'
  browse --wait "$FILLED" "$METRICS/" \
    "[...document.querySelectorAll('#interfaces-table tbody th')].map((c) => c.textContent)" \
    "[...document.querySelectorAll('#events-table td')].map((c) => c.textContent)" \
    "document.querySelectorAll('u').length" \
    "const evil = \"$evil\", hook = Object.fromEntries(['limits', 'unmatched', 'allowed', 'denied',
       'exempt', 'not_ip', 'malformed', 'refused'].map((p) => [p, $zero]));
     const move = { service: evil, loop: evil, from: 1, to: 2, signal: evil, figures: evil };
     paused = true;
     showLimits({ limits: [{ name: evil, setting: evil, key: evil, mode: evil }] });
     showServices({ services: [{ name: evil, median_ns: null, p99_ns: null, breaker: null,
       shedder: null, governor: { control: evil, unit: evil, mode: evil, offer: 1 } }] });
     showInterfaces({ interfaces: [{ name: evil, attached: evil, reason: evil,
       traffic: { xdp: hook } }] });
     showKeys({ span_ns: 1, keys: [{ key: evil, limit: evil }] });
     showEvents({ events: [{ time_ns: Date.now() * 1e6, text: evil, movement: move },
       { time_ns: Date.now() * 1e6, text: evil }] });
     evil" \
    "new Promise((done) => setTimeout(done, 500))" \
    "['limits', 'services', 'interfaces', 'keys'].map((t) =>
       document.querySelector('#' + t + '-table tbody th').textContent === evil).concat(
       document.querySelector('#moves-table td').textContent === evil,
       document.querySelector('#events-table td').textContent === evil)" \
    "document.querySelectorAll('img, main script').length + (window.hit || 0)"
  expect_equal "an interface's name is text" "$(jq --arg name "$HOSTILE" 'index($name) != null' \
    <<<"${seen[0]}")" true
  expect_equal "in an event too" "$(jq --arg name "$HOSTILE" '[.[] | contains($name)] | any' \
    <<<"${seen[1]}")" true
  expect_equal "and no markup" "${seen[2]}" 0
  expect_equal "every text is shown as it is" "$(jq -c unique <<<"${seen[5]}")" '[true]'
  expect_equal "nothing of it acts" "${seen[6]}" 0
  no_problems "hostile text"
}

# The least contrast of any text on the page (WCAG: 4.5), and whose it is.
CONTRAST='(() => {
  const parts = (c) => c.match(/[\d.]+/g).map(Number);
  const light = (c) => parts(c).slice(0, 3).map((v) => v / 255).map((v) =>
    v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const opaque = (c) => parts(c).length === 3 || parts(c)[3] === 1;
  const behind = (e) => { for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor; if (opaque(c)) return c; }
    throw new Error("no background"); };
  let least = { ratio: 99, count: 0 };
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) ||
      ["TITLE", "DESC", "title", "desc", "NOSCRIPT"].includes(e.tagName)) continue;
    const style = getComputedStyle(e);
    const a = light(e instanceof SVGElement ? style.fill : style.color), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const count = least.count + 1;
    least = ratio < least.ratio ? { ratio, count, of: e.outerHTML.slice(0, 80) } :
      { ...least, count };
  }
  return { ...least, background: getComputedStyle(document.body).backgroundColor };
})()'

test_dark_and_light() {
  local light

  browse --scheme light --wait "$FILLED" "$METRICS/" "$CONTRAST"
  expect_between "light: contrast of $(of 0 .of)" "$(of 0 .ratio)" 4.5 21
  expect_between "light: texts looked at" "$(of 0 .count)" 80 1000
  light=$(of 0 .background)
  no_problems light
  browse --scheme dark --wait "$FILLED" "$METRICS/" "$CONTRAST"
  expect_between "dark: contrast of $(of 0 .of)" "$(of 0 .ratio)" 4.5 21
  check "dark is another than light" test "$(of 0 .background)" != "$light"
  no_problems dark
}

test_phone() {
  browse --width 360 --height 740 --scheme dark --wait "$FILLED" \
    --screenshot "$LAB_ROOT/build/dashboard-phone.png" "$METRICS/" \
    "document.documentElement.scrollWidth" "innerWidth" \
    "[...document.querySelectorAll('nav a, button')].map((e) => e.getBoundingClientRect())
      .filter((r) => r.height < 24 || r.right > 360).length"
  expect_equal "phone: nothing beyond the edge" "${seen[0]}" 360
  expect_equal "phone: it is one" "${seen[1]}" 360
  expect_equal "phone: what is to be touched is large enough" "${seen[2]}" 0
  no_problems phone
}

test_without_a_mouse() {
  local focus="(() => { const e = document.activeElement;
    return { id: e.id || e.className || e.textContent, outline: getComputedStyle(e).outlineStyle,
      seen: e.getBoundingClientRect().left >= 0 }; })()"

  browse --wait "$FILLED" "$METRICS/" key:Tab "$focus" key:Tab "$focus" key:Space \
    "document.activeElement.getAttribute('aria-pressed')" \
    "document.querySelector('#state').textContent" key:Enter \
    "document.activeElement.getAttribute('aria-pressed')" key:Tab "$focus" \
    "[...document.querySelectorAll('.scroll')].filter((e) => e.tabIndex === 0 &&
      document.getElementById(e.getAttribute('aria-labelledby'))).length ===
      document.querySelectorAll('.scroll').length" \
    "[...document.querySelectorAll('th')].filter((th) => !th.scope).length" \
    "[...document.querySelectorAll('svg')].filter((svg) => svg.getAttribute('role') !== 'img' ||
      !svg.getAttribute('aria-labelledby').split(' ').every((id) =>
        document.getElementById(id).textContent)).length" \
    "document.querySelector('#state').getAttribute('role') + document.documentElement.lang"
  expect_equal "the first Tab: to the figures" "$(of 0 '"\(.id) \(.outline) \(.seen)"')" \
    "skip solid true"
  expect_equal "the second: the button" "$(of 1 '"\(.id) \(.outline)"')" "pause solid"
  expect_equal "Space pauses" "$(of 2 .) $(of 3 .)" "true paused"
  expect_equal "Enter goes on" "$(of 4 .)" false
  expect_equal "then the sections" "$(of 5 .id)" Traffic
  expect_equal "tables can be scrolled by keys, and have names" "${seen[6]}" true
  expect_equal "every head says of what" "${seen[7]}" 0
  expect_equal "charts have words" "${seen[8]}" 0
  expect_equal "the state is announced" "$(of 9 .)" statusen
  no_problems keys
}

# The page says so when nobody answers, and goes on by itself.
test_controller_comes_back() {
  local state="document.querySelector('#state').textContent"

  spawn browser s timeout 100 "$LAB_TOOLS/browser" --seconds 80 --wait "$FILLED" "$METRICS/" \
    "$state" "new Promise((done) => { const t = setInterval(() => {
       if (/^no answer/.test($state)) { clearInterval(t); done($state); } }, 100); })" \
    "new Promise((done) => { const t = setInterval(() => {
       if ($state === 'live') { clearInterval(t); done($state); } }, 100); })"
  wait_for 60 grep -q live "$LAB_DIR/browser.out" || fail "the page lives"
  stop weir
  check "a controller that has ended is seen" wait_for 30 grep -q '^"no answer' \
    "$LAB_DIR/browser.out"
  start_weir
  check "a new one too" await browser
  expect_equal "it lives again" "$(sed -n 3p "$LAB_DIR/browser.out")" '"live"'
}

need curl
need chromium
weir_lab 4
write_everything "{name: '$HOSTILE'}"
or_give_up ip -n "$LAB_NS_S" link add name "$HOSTILE" type veth peer name wpeer
or_give_up ip -n "$LAB_NS_S" link set "$HOSTILE" up
start_weir
grep -q ^ready: "$LAB_DIR/weir.err" || finish
start_flood flood 300 "to=$LAB_SERVER4,from=10.78.0.1,rate=5000"
test_content
test_hostile_text
test_dark_and_light
test_phone
test_without_a_mouse
test_controller_comes_back
stop flood
weir stop --detach >/dev/null
finish
