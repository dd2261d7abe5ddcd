// SPDX-License-Identifier: GPL-2.0
/*
 * A page in a real browser (Debian's chromium, headless), for tests of what is on it. Loads the
 * URL, waits until --wait is true there, evaluates the expressions one by one and prints each
 * value as a line of JSON. A word `key:Tab` (Enter, Space) among them presses that key instead.
 * The last line is {"problems": [...]}: errors and warnings of the console, exceptions, blocked
 * content (CSP), requests to any other host.
 *
 *	browser [--width N] [--height N] [--scheme dark|light] [--wait EXPRESSION] [--seconds S]
 *	        [--screenshot FILE] URL [EXPRESSION|key:NAME]...
 *
 * Speaks the DevTools protocol over chromium's pipes: JSON that ends with a NUL.
 */
#include <ftw.h>
#include <getopt.h>
#include <jansson.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/tool.h"

static struct {
	const char *url, *wait, *scheme, *screenshot;
	uint64_t width, height, until_ns;
} page = { .width = 1280, .height = 900, .scheme = "light" };

static pid_t chromium;
static int to_fd, from_fd;
static char profile[] = "/tmp/weir-browser-XXXXXX";
static json_int_t last_id;
static const char *session;
static json_t *problems;

/* ---- chromium ---- */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	return remove(path);
}

/* Its children follow when it goes: it is given time for that. */
static void end_chromium(void)
{
	int tries = 0;

	if (!chromium)
		return;
	close(to_fd);
	while (tries++ < 100 && !waitpid(chromium, NULL, WNOHANG)) {
		if (tries == 50)
			kill(chromium, SIGTERM);
		poll(NULL, 0, 50);
	}
	if (tries >= 100)
		kill(-chromium, SIGKILL);
	chromium = 0;
	/* Some of its files may still be written to. */
	for (tries = 0; tries < 20 && nftw(profile, remove_one, 16, FTW_DEPTH | FTW_PHYS); tries++)
		poll(NULL, 0, 100);
}

static void start_chromium(void)
{
	char folder[64];
	int in[2], out[2];

	if (!mkdtemp(profile) || pipe(in) || pipe(out))
		die(TOOL_SYSTEM, "can't start: %s", strerror(errno));
	snprintf(folder, sizeof(folder), "--user-data-dir=%s", profile);
	chromium = fork();
	if (!chromium) {
		setpgid(0, 0);
		/* It reads 3 and writes 4. */
		dup2(in[0], 103);
		dup2(out[1], 104);
		dup2(103, 3);
		dup2(104, 4);
		for (int fd = 5; fd < 110; fd++)
			close(fd);
		execlp("chromium", "chromium", "--headless", "--no-sandbox", "--disable-gpu",
		       "--disable-dev-shm-usage", "--remote-debugging-pipe", "--no-first-run",
		       "--disable-background-networking", "--disable-component-update",
		       "--disable-extensions", "--disable-sync", folder, "about:blank", NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	to_fd = in[1];
	from_fd = out[0];
	atexit(end_chromium);
}

/* ---- the protocol ---- */

static void say(json_t *message)
{
	char *text = json_dumps(message, JSON_COMPACT);
	size_t length = strlen(text) + 1;

	for (size_t sent = 0; sent < length;) {
		ssize_t done = write(to_fd, text + sent, length - sent);

		if (done <= 0)
			die(TOOL_SYSTEM, "chromium doesn't listen: is it installed?");
		sent += (size_t)done;
	}
	free(text);
	json_decref(message);
}

/* The next message. */
static json_t *hear(void)
{
	static char *text;
	static size_t used, room;
	json_t *message;
	char *end;

	while (!used || !(end = memchr(text, '\0', used))) {
		struct pollfd waits = { .fd = from_fd, .events = POLLIN };
		uint64_t now = tool_now_ns();
		ssize_t got;

		if (tool_stopped || now > page.until_ns ||
		    poll(&waits, 1, (int)((page.until_ns - now) / 1000000 + 1)) < 1)
			die(TOOL_SYSTEM, "chromium didn't answer in time");
		if (room < used + 65536) {
			room = 2 * (used + 65536);
			text = realloc(text, room);
		}
		got = text ? read(from_fd, text + used, room - used) : -1;
		if (got <= 0)
			die(TOOL_SYSTEM, "chromium ended: is it installed?");
		used += (size_t)got;
	}
	message = json_loads(text, 0, NULL);
	used -= (size_t)(end + 1 - text);
	memmove(text, end + 1, used);
	if (!message)
		die(TOOL_SYSTEM, "chromium said what is no JSON");
	return message;
}

static json_t *at(json_t *object, const char *a, const char *b)
{
	return json_object_get(json_object_get(object, a), b);
}

static void add_problem(const char *kind, const char *words)
{
	json_array_append_new(problems, json_pack("{s:s, s:s?}", "kind", kind, "text", words));
}

static void note_request(json_t *params)
{
	const char *url = json_string_value(at(params, "request", "url"));
	const char *path = strchr(page.url + strlen("http://"), '/');
	size_t origin = path ? (size_t)(path - page.url) : strlen(page.url);

	if (url && strncmp(url, "data:", 5) && strncmp(url, page.url, origin))
		add_problem("request elsewhere", url);
}

static void note_console(json_t *params)
{
	const char *type = json_string_value(json_object_get(params, "type"));
	json_t *first = json_array_get(json_object_get(params, "args"), 0);

	if (type && (!strcmp(type, "error") || !strcmp(type, "warning")))
		add_problem(type, json_string_value(json_object_get(first, "value")));
}

static void note_exception(json_t *details)
{
	json_t *words = at(details, "exception", "description");

	add_problem("exception",
		    json_string_value(words ? words : json_object_get(details, "text")));
}

static void note_event(json_t *message)
{
	const char *method = json_string_value(json_object_get(message, "method"));
	json_t *params = json_object_get(message, "params");

	if (!method)
		return;
	if (!strcmp(method, "Runtime.exceptionThrown"))
		note_exception(json_object_get(params, "exceptionDetails"));
	else if (!strcmp(method, "Runtime.consoleAPICalled"))
		note_console(params);
	else if (!strcmp(method, "Log.entryAdded"))
		add_problem(json_string_value(at(params, "entry", "source")),
			    json_string_value(at(params, "entry", "text")));
	else if (!strcmp(method, "Network.requestWillBeSent"))
		note_request(params);
}

/* Takes over params; the result, of which the caller takes over a reference. */
static json_t *call(const char *method, json_t *params)
{
	json_t *message = json_pack("{s:I, s:s, s:o}", "id", ++last_id, "method", method, "params",
				    params ? params : json_object());
	json_t *result, *error;

	if (session)
		json_object_set_new(message, "sessionId", json_string(session));
	say(message);
	for (;;) {
		message = hear();
		if (json_integer_value(json_object_get(message, "id")) == last_id)
			break;
		note_event(message);
		json_decref(message);
	}
	error = at(message, "error", "message");
	if (error)
		die(TOOL_SYSTEM, "%s: %s", method, json_string_value(error));
	result = json_incref(json_object_get(message, "result"));
	json_decref(message);
	return result;
}

static void do_call(const char *method, json_t *params)
{
	json_decref(call(method, params));
}

/* ---- the page ---- */

/* The value of an expression; null for undefined. What it throws ends the program, unless
 * `patient`. */
static json_t *evaluate(const char *expression, bool patient)
{
	json_t *result = call("Runtime.evaluate",
			      json_pack("{s:s, s:b, s:b}", "expression", expression,
					"returnByValue", true, "awaitPromise", true));
	json_t *thrown = json_object_get(result, "exceptionDetails"), *value;

	if (thrown && !patient)
		die(1, "%s: %s", expression,
		    json_string_value(at(thrown, "exception", "description")));
	value = json_incref(at(result, "result", "value"));
	json_decref(result);
	return value ? value : json_null();
}

static void open_page(void)
{
	json_t *target, *attached;

	target = call("Target.createTarget", json_pack("{s:s}", "url", "about:blank"));
	attached = call("Target.attachToTarget",
			json_pack("{s:O, s:b}", "targetId", json_object_get(target, "targetId"),
				  "flatten", true));
	session = strdup(json_string_value(json_object_get(attached, "sessionId")));
	json_decref(target);
	json_decref(attached);
	do_call("Runtime.enable", NULL);
	do_call("Log.enable", NULL);
	do_call("Page.enable", NULL);
	do_call("Network.enable", NULL);
	do_call("Emulation.setDeviceMetricsOverride",
		json_pack("{s:I, s:I, s:i, s:b}", "width", (json_int_t)page.width, "height",
			  (json_int_t)page.height, "deviceScaleFactor", 1, "mobile",
			  page.width < 600));
	do_call("Emulation.setEmulatedMedia",
		json_pack("{s:[{s:s, s:s}]}", "features", "name", "prefers-color-scheme", "value",
			  page.scheme));
	do_call("Page.navigate", json_pack("{s:s}", "url", page.url));
}

static void wait_for_page(void)
{
	bool there = false;

	while (page.wait && !there) {
		json_t *value = evaluate(page.wait, true);

		there = json_is_true(value);
		json_decref(value);
		if (!there && tool_now_ns() + NS_PER_SEC > page.until_ns)
			die(1, "not true in time: %s", page.wait);
		poll(NULL, 0, 100);
	}
}

static void press(const char *name)
{
	static const struct {
		const char *name, *text;
		int code;
	} keys[] = { { "Tab", "", 9 }, { "Enter", "\r", 13 }, { "Space", " ", 32 } };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(keys[i].name, name))
			continue;
		do_call("Input.dispatchKeyEvent",
			json_pack("{s:s, s:s, s:s, s:i, s:s}", "type",
				  *keys[i].text ? "keyDown" : "rawKeyDown", "key",
				  keys[i].code == 32 ? " " : name, "code", name,
				  "windowsVirtualKeyCode", keys[i].code, "text", keys[i].text));
		do_call("Input.dispatchKeyEvent",
			json_pack("{s:s, s:s, s:s, s:i}", "type", "keyUp", "key",
				  keys[i].code == 32 ? " " : name, "code", name,
				  "windowsVirtualKeyCode", keys[i].code));
		return;
	}
	die(TOOL_USAGE, "key '%s': give Tab, Enter or Space", name);
}

static void print_line(json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	puts(text);
	free(text);
	json_decref(value);
}

/* ---- the screenshot ---- */

static void write_base64(const char *text, FILE *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = 0;
	int held = 0;

	for (const char *digit; *text && (digit = strchr(digits, *text)); text++) {
		bits = bits << 6 | (uint32_t)(digit - digits);
		held += 6;
		if (held < 8)
			continue;
		held -= 8;
		fputc((int)(bits >> held & 0xff), out);
	}
}

static void take_screenshot(void)
{
	json_t *result = call("Page.captureScreenshot", json_pack("{s:s, s:b}", "format", "png",
								  "captureBeyondViewport", true));
	FILE *out = fopen(page.screenshot, "wb");

	if (!out)
		die(TOOL_SYSTEM, "%s: %s", page.screenshot, strerror(errno));
	write_base64(json_string_value(json_object_get(result, "data")), out);
	if (fclose(out))
		die(TOOL_SYSTEM, "%s: %s", page.screenshot, strerror(errno));
	json_decref(result);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "width", required_argument, NULL, 'w' },
		{ "height", required_argument, NULL, 'h' },
		{ "scheme", required_argument, NULL, 'c' },
		{ "wait", required_argument, NULL, 'a' },
		{ "seconds", required_argument, NULL, 's' },
		{ "screenshot", required_argument, NULL, 'o' },
		{ 0 },
	};
	uint64_t ns = 60 * NS_PER_SEC;
	int option;

	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (option) {
		case 'w': page.width = tool_number("--width", optarg, 100, 10000); break;
		case 'h': page.height = tool_number("--height", optarg, 100, 10000); break;
		case 's': ns = tool_seconds("--seconds", optarg); break;
		case 'c': page.scheme = optarg; break;
		case 'a': page.wait = optarg; break;
		case 'o': page.screenshot = optarg; break;
		default: return TOOL_USAGE;
		}
	}
	if (optind == argc || strncmp(argv[optind], "http://", 7))
		die(TOOL_USAGE, "give an http:// address");
	page.url = argv[optind++];
	page.until_ns = tool_now_ns() + ns;
	tool_setup();
	problems = json_array();
	start_chromium();
	open_page();
	wait_for_page();
	for (; optind < argc; optind++) {
		if (!strncmp(argv[optind], "key:", 4))
			press(argv[optind] + 4);
		else
			print_line(evaluate(argv[optind], false));
	}
	if (page.screenshot)
		take_screenshot();
	print_line(json_pack("{s:o}", "problems", problems));
	return 0;
}
