// SPDX-License-Identifier: GPL-2.0
// Reads the controller's reports (docs/json.md) once a second and shows them. Whatever text comes
// from there is only ever put into text nodes and attributes of SVG: nothing of it is markup.
"use strict";

const EVERY_MS = 1000;
const EVENTS_EVERY = 2;          // of these
const SAMPLES = 300;             // that are kept: five minutes
const SAMPLES_WIDE = 60;         // the chart is never of fewer
const MOVES_SHOWN = 20;
const EVENTS_SHOWN = 100;
const TIMELINE_MS = 15 * 60 * 1000;
const PASSED = ["limits", "unmatched", "allowed", "exempt", "not_ip", "malformed"];

const samples = [];              // {at, passed, refused} a second
let before = null;               // totals of the report before
let paused = false;
let polls = 0;

const find = (id) => document.getElementById(id);

// ---- words ----

const figures = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const small = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

function count(value) {
	if (value === null || value === undefined)
		return "–";
	return (Math.abs(value) < 10 ? small : figures).format(value);
}

function duration(ns) {
	if (ns === null)
		return "–";
	if (ns < 1e6)
		return `${small.format(ns / 1e3)} µs`;
	return ns < 1e9 ? `${small.format(ns / 1e6)} ms` : `${small.format(ns / 1e9)} s`;
}

function clock(ns) {
	return new Date(ns / 1e6).toLocaleTimeString("en-GB");
}

function percent(part) {
	return `${small.format(part * 100)}%`;
}

// ---- tables ----

// A cell: a text, or {text, kind} where kind is a class.
function cell(content, head) {
	const made = document.createElement(head ? "th" : "td");
	const value = typeof content === "object" ? content : { text: content };

	made.textContent = value.text;
	if (value.kind)
		made.className = value.kind;
	if (head)
		made.scope = "row";
	return made;
}

const number = (value, hot) => ({ text: count(value), kind: hot ? "number hot" : "number" });

// Rows of cells, the first of each its head.
function fill(id, rows, none) {
	const table = find(id);
	const body = document.createElement("tbody");

	for (const row of rows) {
		const line = document.createElement("tr");

		line.append(...row.map((content, i) => cell(content, i === 0)));
		body.append(line);
	}
	if (!rows.length) {
		const line = document.createElement("tr");
		const only = cell({ text: none, kind: "none" });

		only.colSpan = table.tHead.rows[0].cells.length;
		line.append(only);
		body.append(line);
	}
	table.tBodies[0].replaceWith(body);
}

// ---- SVG ----

function draw(name, attributes, text) {
	const made = document.createElementNS("http://www.w3.org/2000/svg", name);

	for (const [key, value] of Object.entries(attributes))
		made.setAttribute(key, value);
	if (text !== undefined)
		made.textContent = text;
	return made;
}

// All but the title and the description.
function redraw(svg, shapes) {
	svg.replaceChildren(...svg.querySelectorAll(":scope > title, :scope > desc"), ...shapes);
}

// ---- traffic ----

// What passed and what was refused, each packet once: what TC sees of the way in has been at XDP.
function totals(report) {
	const sum = { time_ns: report.time_ns, passed: 0, refused: 0 };

	for (const { traffic } of report.interfaces) {
		const passed = (hook) => PASSED.reduce((n, path) => n + traffic[hook][path].packets, 0);
		const inward = passed("xdp") ? "xdp" : "tc-ingress";

		sum.passed += passed(inward) + passed("tc-egress");
		for (const hook of Object.values(traffic))
			sum.refused += hook.refused.packets + hook.denied.packets;
	}
	return sum;
}

function line(kind, most) {
	const wide = Math.max(SAMPLES_WIDE, samples.length);
	const step = 600 / (wide - 1);
	const first = wide - samples.length;
	const points = samples.map((sample, i) =>
		`${((first + i) * step).toFixed(1)},${(175 - 170 * sample[kind] / most).toFixed(1)}`);

	return draw("polyline", { class: kind, points: points.join(" ") });
}

function showTraffic(report) {
	const now = totals(report);
	const seconds = before ? (now.time_ns - before.time_ns) / 1e9 : 0;
	const last = before;

	if (before && seconds <= 0)
		return; // the same report again
	before = now;
	if (!last)
		return;
	// Counts that went back are a new start.
	samples.push({
		at: now.time_ns,
		passed: Math.max(0, now.passed - last.passed) / seconds,
		refused: Math.max(0, now.refused - last.refused) / seconds,
	});
	if (samples.length > SAMPLES)
		samples.shift();
	const newest = samples[samples.length - 1];
	const most = Math.max(1, ...samples.map((s) => Math.max(s.passed, s.refused)));

	redraw(find("chart"), [line("passed", most), line("refused", most)]);
	find("passed-now").textContent = count(newest.passed);
	find("refused-now").textContent = count(newest.refused);
	find("chart-from").textContent = `${Math.max(SAMPLES_WIDE, samples.length)} s ago`;
	find("chart-most").textContent = `highest ${count(most)}/s`;
	find("chart-words").textContent =
		`now ${count(newest.passed)} passed and ${count(newest.refused)} refused a second`;
}

function showFacts(report) {
	const { ledger, lists } = report;
	const facts = [
		["Ledger held", `${small.format(ledger.held_percent)}% of ${count(ledger.places)}`],
		["Untracked", count(ledger.untracked)],
		["Contended", count(ledger.contended)],
		["Samples lost", count(ledger.events_lost)],
		["Allowed prefixes", count(lists.allow.ipv4 + lists.allow.ipv6)],
		["Denied prefixes", count(lists.deny.ipv4 + lists.deny.ipv6)],
	];
	const made = facts.map(([name, value]) => {
		const pair = document.createElement("div");
		const term = document.createElement("dt");
		const words = document.createElement("dd");

		term.textContent = name;
		words.textContent = value;
		pair.append(term, words);
		return pair;
	});

	find("facts").replaceChildren(...made);
}

// ---- limits, interfaces, keys ----

function showLimits(report) {
	fill("limits-table", report.limits.map((limit) => [
		limit.name, number(limit.admitted_per_sec),
		number(limit.refused_per_sec, limit.refused_per_sec > 0),
		limit.setting, limit.key, limit.mode,
		number(limit.admitted), number(limit.refused), number(limit.would_refuse),
		number(limit.untracked),
	]), "no limits: the configuration has none");
}

function showInterfaces(report) {
	fill("interfaces-table", report.interfaces.map((face) => {
		const sum = (path) => Object.values(face.traffic).reduce(
			(n, hook) => n + hook[path].packets, 0);
		const passed = PASSED.reduce((n, path) => n + sum(path), 0);

		return [face.name, { text: face.attached, kind: face.attached === "no" ? "hot" : "" },
			number(passed), number(sum("refused")), number(sum("denied")),
			{ text: face.reason, kind: "long" }];
	}), "no interfaces: nothing is limited");
}

function showKeys(top) {
	fill("keys-table", top.keys.map((key) => [
		key.key, number(key.admitted_per_sec),
		number(key.refused_per_sec, key.refused_per_sec > 0), key.limit,
	]), top.span_ns ? "nobody sends" : "looking: about two seconds");
}

// ---- services ----

function breaker(loop) {
	return loop ? { text: `drops ${percent(loop.drop)}${loop.frozen ? ", frozen" : ""}`,
		kind: loop.drop > 0 ? "hot" : "" } : "–";
}

function shedder(loop) {
	if (!loop)
		return "–";
	const ceiling = loop.ceiling === null ? "no ceiling" : `ceiling ${count(loop.ceiling)}`;
	const cpu = loop.cpu === null ? "unknown" : percent(loop.cpu / 1000);

	return { text: `${ceiling}, CPU ${cpu}${loop.frozen ? ", frozen" : ""}`,
		kind: loop.hot ? "hot" : "" };
}

function governor(loop) {
	if (!loop)
		return "–";
	const offer = loop.offer === null ? "unlimited" : count(loop.offer);
	const unit = loop.unit === "connections" ? loop.unit : `${loop.unit}/s`;

	return `${loop.control} ${offer} ${unit}, ${loop.mode}${loop.frozen ? ", frozen" : ""}`;
}

function showServices(report) {
	fill("services-table", (report.services || []).map((service) => [
		service.name, number(service.attempts), number(service.ok),
		number(service.failed, service.failed > 0), number(service.dropped),
		number(service.shed), number(service.in_flight),
		{ text: duration(service.median_ns), kind: "number" },
		{ text: duration(service.p99_ns), kind: "number" },
		breaker(service.breaker), shedder(service.shedder), governor(service.governor),
	]), "no services: docs/services.md");
}

// ---- events and movements ----

function level(move, value) {
	if (value === null)
		return move.loop === "governor" ? "unlimited" : "none";
	return move.loop === "breaker" ? percent(value) : count(value);
}

function showMoves(moves) {
	const newest = moves.slice(-MOVES_SHOWN).reverse();

	fill("moves-table", newest.map(({ time_ns, movement }) => [
		clock(time_ns), movement.service, movement.loop, level(movement, movement.from),
		level(movement, movement.to), movement.signal,
		{ text: movement.figures, kind: "long" },
	]), "no movement yet");
}

// One lane a loop: a line that steps, and a dot where it moved.
function lane(name, moves, top, width, from, until) {
	const x = (ns) => (width * (ns / 1e6 - from) / (until - from)).toFixed(1);
	const known = moves.flatMap(({ movement }) => [movement.from, movement.to])
		.filter((value) => value !== null);
	const most = Math.max(1e-9, ...known);
	const y = (value) => (top + 52 - 30 * (value === null ? 1 : value / most)).toFixed(1);
	const points = [`0,${y(moves[0].movement.from)}`];
	const dots = [];

	for (const { time_ns, movement } of moves) {
		points.push(`${x(time_ns)},${y(movement.from)}`, `${x(time_ns)},${y(movement.to)}`);
		dots.push(draw("circle", { cx: x(time_ns), cy: y(movement.to), r: 4 }));
	}
	points.push(`${width},${y(moves[moves.length - 1].movement.to)}`);
	return [
		draw("line", { x1: 0, x2: width, y1: top + 56, y2: top + 56 }),
		draw("text", { x: 6, y: top + 15 },
			`${name}: ${level(moves[moves.length - 1].movement,
				moves[moves.length - 1].movement.to)}`),
		draw("polyline", { points: points.join(" ") }), ...dots,
	];
}

function showTimeline(moves) {
	const until = Date.now();
	const lanes = new Map();
	const svg = find("timeline");

	for (const move of moves) {
		const name = `${move.movement.service} ${move.movement.loop}`;

		if (move.time_ns / 1e6 >= until - TIMELINE_MS)
			lanes.set(name, [...(lanes.get(name) || []), move]);
	}
	const first = Math.min(until - 60000, ...[...lanes.values()].map((l) => l[0].time_ns / 1e6));
	const width = svg.clientWidth || 600;
	const shapes = [...lanes].flatMap(([name, of], i) =>
		lane(name, of, i * 60, width, first, until));
	const height = Math.max(30, lanes.size * 60);

	svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
	svg.setAttribute("height", height);
	redraw(svg, shapes);
	find("timeline-from").textContent = `${Math.ceil((until - first) / 60000)} min ago`;
	find("timeline-words").textContent = lanes.size
		? `${[...lanes].map(([name, of]) => `${name} moved ${of.length} times`).join(", ")}`
		: "no movement in the last 15 minutes";
}

function showEvents({ events }) {
	const moves = events.filter((event) => event.movement);
	const others = events.filter((event) => !event.movement).slice(-EVENTS_SHOWN).reverse();

	showMoves(moves);
	showTimeline(moves);
	fill("events-table", others.map(({ time_ns, text }) =>
		[clock(time_ns), { text, kind: "long" }]), "no events");
}

// ---- once a second ----

function say(text, bad) {
	const state = find("state");

	if (state.textContent !== text)
		state.textContent = text;
	state.className = bad ? "bad" : "";
}

async function get(path) {
	const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(5000) });

	if (!answer.ok)
		throw new Error(`${path}: ${answer.status}`);
	return answer.json();
}

async function poll() {
	const wantsEvents = polls++ % EVENTS_EVERY === 0;
	const [report, top, events] = await Promise.all([get("api/show"), get("api/top"),
		wantsEvents ? get("api/events") : null]);

	showTraffic(report);
	showFacts(report);
	showLimits(report);
	showServices(report);
	showKeys(top);
	showInterfaces(report);
	if (events)
		showEvents(events);
	say("live", false);
}

async function run() {
	if (!paused && !document.hidden) {
		try {
			await poll();
		} catch (error) {
			say(`no answer from the controller (${error.message}): what is shown is old`, true);
		}
	}
	setTimeout(run, EVERY_MS);
}

find("pause").addEventListener("click", () => {
	paused = !paused;
	find("pause").setAttribute("aria-pressed", String(paused));
	find("pause").textContent = paused ? "Go on" : "Pause";
	if (paused)
		say("paused", false);
});

run();
