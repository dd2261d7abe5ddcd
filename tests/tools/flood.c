// SPDX-License-Identifier: GPL-2.0
/*
 * flood: frames out of an interface at an exact rate, from as many sources as asked for.
 *
 * Pacing is by an absolute schedule: frame k of a flow is due k / rate after the start, so a
 * late wake-up is caught up with and nothing drifts. A flow of rate R for S seconds is
 * ceil(R * S) frames. With several CPUs, thread t of T sends the frames k = t, t + T, ...: the
 * same frames in all, whatever T is.
 */
#include "frame.h"

#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#define FLOWS_MAX 16
#define CPUS_MAX 64
#define BATCH 64
#define RATE_MAX 20000000ULL  /* RATE_MAX * TOOL_SECONDS_MAX * 1e9 stays below 2^64 */
#define GRACE_NS 100000000ULL /* how long after its end a late flow may still catch up */

static const char usage[] =
	"usage: flood -i IFACE --seconds S --flow KEY=VALUE,... [--flow ...] [--cpus A,B,...]\n"
	"             [--every S]\n"
	"flow: to=ADDR from=ADDR mac=MAC [name=WORD] [proto=udp|syn] [port=N] [from_port=N]\n"
	"      [ports=N] [sources=N] [shift=BITS] [order=seq|random] [seed=N] [size=BYTES]\n"
	"      [vlan=ID] (once or twice) [rate=PPS, 0: as fast as it goes] [frames=N]\n"
	"One line of JSON at the end, with --every also one every S seconds.\n";

struct flow {
	char name[32];
	struct frame_spec spec;
	struct frame frame;
	uint64_t sources, ports, seed, rate, frames;
	unsigned int shift;
	bool random, has_mac, has_to, has_from;
};

struct progress {
	uint64_t next; /* the frame this thread sends next */
	uint64_t sent, errors;
	uint64_t last_ns, late_max_ns;
};

struct worker {
	pthread_t thread;
	int cpu; /* -1: any */
	int fd;
	struct progress flows[FLOWS_MAX];
	uint8_t batch[BATCH][FRAME_MAX];
};

static struct {
	struct flow flows[FLOWS_MAX];
	unsigned int flow_count, worker_count;
	int cpus[CPUS_MAX], ifindex;
	const char *interface;
	uint64_t duration_ns, every_ns, start_ns;
	struct worker *workers;
} run;

static void parse_mac(const char *text, uint8_t mac[6])
{
	int used = 0;

	if (sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx%n", &mac[0], &mac[1], &mac[2], &mac[3],
		   &mac[4], &mac[5], &used) != 6 ||
	    text[used])
		die(TOOL_USAGE, "mac '%s': give six bytes as 02:00:00:00:00:01", text);
}

static void parse_name(struct flow *flow, const char *text)
{
	if (text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-")] ||
	    strlen(text) >= sizeof(flow->name))
		die(TOOL_USAGE, "name '%s': give up to %zu of a-z, 0-9 and -", text,
		    sizeof(flow->name) - 1);
	strcpy(flow->name, text);
}

static uint8_t parse_proto(const char *text)
{
	if (strcmp(text, "udp") == 0)
		return IPPROTO_UDP;
	if (strcmp(text, "syn") == 0)
		return IPPROTO_TCP;
	die(TOOL_USAGE, "proto '%s': give udp or syn", text);
}

static bool parse_order(const char *text)
{
	bool random = strcmp(text, "random") == 0;

	if (!random && strcmp(text, "seq") != 0)
		die(TOOL_USAGE, "order '%s': give seq or random", text);
	return random;
}

static void parse_vlan(struct frame_spec *spec, const char *text)
{
	if (spec->tag_count == FRAME_TAGS_MAX)
		die(TOOL_USAGE, "vlan '%s': a flow has at most %d tags", text, FRAME_TAGS_MAX);
	spec->tags[spec->tag_count++] = (uint16_t)tool_number("vlan", text, 0, 4095);
}

static bool parse_address(struct flow *flow, const char *key, const char *value)
{
	if (strcmp(key, "to") == 0) {
		flow->spec.destination = tool_address(key, value);
		flow->has_to = true;
	} else if (strcmp(key, "from") == 0) {
		flow->spec.source = tool_address(key, value);
		flow->has_from = true;
	} else if (strcmp(key, "mac") == 0) {
		parse_mac(value, flow->spec.to_mac);
		flow->has_mac = true;
	} else {
		return false;
	}
	return true;
}

static bool parse_amount(struct flow *flow, const char *key, const char *value)
{
	if (strcmp(key, "rate") == 0)
		flow->rate = tool_number(key, value, 0, RATE_MAX);
	else if (strcmp(key, "frames") == 0)
		flow->frames = tool_number(key, value, 1, UINT32_MAX);
	else if (strcmp(key, "sources") == 0)
		flow->sources = tool_number(key, value, 1, UINT32_MAX);
	else if (strcmp(key, "shift") == 0)
		flow->shift = (unsigned int)tool_number(key, value, 0, 96);
	else if (strcmp(key, "seed") == 0)
		flow->seed = tool_number(key, value, 0, UINT64_MAX);
	else if (strcmp(key, "ports") == 0)
		flow->ports = tool_number(key, value, 1, 65535);
	else if (strcmp(key, "size") == 0)
		flow->spec.size = (unsigned int)tool_number(key, value, 1, FRAME_MAX);
	else
		return false;
	return true;
}

static void parse_pair(struct flow *flow, const char *key, const char *value)
{
	if (parse_address(flow, key, value) || parse_amount(flow, key, value))
		return;
	if (strcmp(key, "name") == 0)
		parse_name(flow, value);
	else if (strcmp(key, "proto") == 0)
		flow->spec.protocol = parse_proto(value);
	else if (strcmp(key, "port") == 0)
		flow->spec.to_port = (uint16_t)tool_number(key, value, 1, 65535);
	else if (strcmp(key, "from_port") == 0)
		flow->spec.from_port = (uint16_t)tool_number(key, value, 1, 65535);
	else if (strcmp(key, "order") == 0)
		flow->random = parse_order(value);
	else if (strcmp(key, "vlan") == 0)
		parse_vlan(&flow->spec, value);
	else
		die(TOOL_USAGE, "flow has no '%s'\n%s", key, usage);
}

static void check_flow(struct flow *flow)
{
	unsigned int least = frame_headers_size(&flow->spec);
	bool ipv6 = !IN6_IS_ADDR_V4MAPPED(&flow->spec.destination);

	if (!flow->has_to || !flow->has_from)
		die(TOOL_USAGE, "flow '%s' needs to=ADDR and from=ADDR", flow->name);
	if (!flow->has_mac && strcmp(run.interface, "lo") != 0)
		die(TOOL_USAGE, "flow '%s' needs mac=MAC, the receiver's", flow->name);
	if (ipv6 == IN6_IS_ADDR_V4MAPPED(&flow->spec.source))
		die(TOOL_USAGE, "flow '%s': to and from are of different families", flow->name);
	if (!ipv6 && flow->shift > 31)
		die(TOOL_USAGE, "flow '%s': shift %u leaves an IPv4 address", flow->name,
		    flow->shift);
	if (flow->spec.size && flow->spec.size < least)
		die(TOOL_USAGE, "size '%u': the headers alone take %u", flow->spec.size, least);
	/* Ends by time, by count or by both; a paced flow's time is a count. */
	if (flow->rate) {
		unsigned __int128 due = (unsigned __int128)flow->rate * run.duration_ns;
		uint64_t frames = (uint64_t)((due + NS_PER_SEC - 1) / NS_PER_SEC);

		if (!flow->frames || frames < flow->frames)
			flow->frames = frames;
	} else if (!flow->frames) {
		flow->frames = UINT64_MAX;
	}
}

static void parse_flow(char *text)
{
	struct flow *flow = &run.flows[run.flow_count];
	char *rest = NULL;

	if (run.flow_count == FLOWS_MAX)
		die(TOOL_USAGE, "at most %d flows", FLOWS_MAX);
	*flow = (struct flow){ .sources = 1, .ports = 1, .rate = 1 };
	flow->spec.protocol = IPPROTO_UDP;
	flow->spec.to_port = 9000;
	flow->spec.from_port = 40000;
	snprintf(flow->name, sizeof(flow->name), "flow-%u", run.flow_count);
	for (char *pair = strtok_r(text, ",", &rest); pair; pair = strtok_r(NULL, ",", &rest)) {
		char *value = strchr(pair, '=');

		if (!value)
			die(TOOL_USAGE, "flow: '%s' is not KEY=VALUE\n%s", pair, usage);
		*value++ = 0;
		parse_pair(flow, pair, value);
	}
	run.flow_count++;
}

static void parse_cpus(char *text)
{
	char *rest = NULL;

	run.worker_count = 0;
	for (char *one = strtok_r(text, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
		if (run.worker_count == CPUS_MAX)
			die(TOOL_USAGE, "at most %d CPUs", CPUS_MAX);
		run.cpus[run.worker_count++] = (int)tool_number("cpu", one, 0, CPU_SETSIZE - 1);
	}
	if (!run.worker_count)
		die(TOOL_USAGE, "--cpus needs at least one CPU");
}

static void parse_arguments(int argc, char **argv)
{
	run.cpus[0] = -1;
	run.worker_count = 1;
	for (int i = 1; i < argc; i += 2) {
		char *value = argv[i + 1];

		if (!value)
			die(TOOL_USAGE, "'%s' needs a value\n%s", argv[i], usage);
		if (strcmp(argv[i], "-i") == 0)
			run.interface = value;
		else if (strcmp(argv[i], "--seconds") == 0)
			run.duration_ns = tool_seconds("--seconds", value);
		else if (strcmp(argv[i], "--every") == 0)
			run.every_ns = tool_seconds("--every", value);
		else if (strcmp(argv[i], "--cpus") == 0)
			parse_cpus(value);
		else if (strcmp(argv[i], "--flow") == 0)
			parse_flow(value);
		else
			die(TOOL_USAGE, "unknown '%s'\n%s", argv[i], usage);
	}
	if (!run.interface || !run.duration_ns || !run.flow_count)
		die(TOOL_USAGE, "-i, --seconds and --flow are needed\n%s", usage);
	for (unsigned int i = 0; i < run.flow_count; i++)
		check_flow(&run.flows[i]);
}

static void write_frame(const struct flow *flow, uint64_t k, uint8_t *out)
{
	uint64_t pick = flow->random ? tool_scramble(flow->seed ^ tool_scramble(k)) : k;
	struct in6_addr source =
		frame_nth_source(&flow->spec.source, pick % flow->sources, flow->shift);
	uint64_t port = flow->spec.from_port + k / flow->sources % flow->ports;

	memcpy(out, flow->frame.bytes, flow->frame.size);
	frame_set_source(&flow->frame, out, &source, (uint16_t)port);
}

/* How many frames of the flow are due `passed_ns` after the start. */
static uint64_t frames_due(const struct flow *flow, uint64_t passed_ns)
{
	uint64_t due;

	if (!flow->rate)
		return passed_ns < run.duration_ns ? flow->frames : 0;
	due = passed_ns * flow->rate / NS_PER_SEC + 1;
	return due < flow->frames ? due : flow->frames;
}

static uint64_t frame_due_ns(const struct flow *flow, uint64_t k)
{
	return flow->rate ? k * NS_PER_SEC / flow->rate : 0;
}

/* Sends what the batch holds; counts what the kernel took and what it refused (ENOBUFS). */
static void send_batch(struct worker *w, struct progress *p, unsigned int count, unsigned int size)
{
	struct mmsghdr messages[BATCH] = { 0 };
	struct iovec parts[BATCH];
	unsigned int done = 0;

	for (unsigned int i = 0; i < count; i++) {
		parts[i] = (struct iovec){ w->batch[i], size };
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	while (done < count) {
		int n = sendmmsg(w->fd, messages + done, count - done, 0);

		if (n > 0) {
			done += (unsigned int)n;
			p->sent += (unsigned int)n;
		} else if (errno == ENOBUFS || errno == EAGAIN) {
			done++;
			p->errors++;
		} else if (errno != EINTR) {
			fprintf(stderr, "flood: sending on '%s': %s\n", run.interface,
				strerror(errno));
			tool_stopped = 2;
			return;
		}
	}
}

/* One batch of a flow, if any of it is due. Returns whether it sent something. */
static bool step_flow(struct worker *w, unsigned int index, uint64_t passed_ns)
{
	const struct flow *flow = &run.flows[index];
	struct progress *p = &w->flows[index];
	uint64_t due = frames_due(flow, passed_ns), late;
	unsigned int count = 0;

	if (p->next >= due)
		return false;
	late = passed_ns - frame_due_ns(flow, p->next);
	if (flow->rate && late > p->late_max_ns)
		p->late_max_ns = late;
	for (; count < BATCH && p->next < due; p->next += run.worker_count)
		write_frame(flow, p->next, w->batch[count++]);
	send_batch(w, p, count, flow->frame.size);
	p->last_ns = tool_now_ns() - run.start_ns;
	return true;
}

/* When this worker has something to send next, or UINT64_MAX: it is done. */
static uint64_t next_due_ns(const struct worker *w, uint64_t passed_ns)
{
	uint64_t soonest = UINT64_MAX;

	for (unsigned int i = 0; i < run.flow_count; i++) {
		const struct flow *flow = &run.flows[i];
		uint64_t due;

		if (w->flows[i].next >= flow->frames ||
		    (!flow->rate && passed_ns >= run.duration_ns))
			continue;
		due = frame_due_ns(flow, w->flows[i].next);
		if (due < soonest)
			soonest = due;
	}
	return soonest;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / NS_PER_SEC), (long)(ns % NS_PER_SEC) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	cpu_set_t set;

	if (w->cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET(w->cpu, &set);
		if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
			die(TOOL_SYSTEM, "can't run on CPU %d", w->cpu);
	}
	prctl(PR_SET_TIMERSLACK, 1);
	sleep_until(run.start_ns);
	while (!tool_stopped) {
		uint64_t passed = tool_now_ns() - run.start_ns, due;
		bool sent = false;

		if (passed > run.duration_ns + GRACE_NS)
			break;
		for (unsigned int i = 0; i < run.flow_count; i++)
			sent |= step_flow(w, i, passed);
		if (sent)
			continue;
		due = next_due_ns(w, passed);
		if (due == UINT64_MAX)
			break;
		sleep_until(run.start_ns + due);
	}
	return NULL;
}

static int open_socket(void)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = run.ifindex };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), size = 4 << 20;

	if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)))
		die(TOOL_SYSTEM, "packet socket on '%s': %s", run.interface, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	return fd;
}

static struct progress sum_flow(unsigned int flow)
{
	struct progress sum = { 0 };

	for (unsigned int i = 0; i < run.worker_count; i++) {
		const struct progress *p = &run.workers[i].flows[flow];

		sum.sent += __atomic_load_n(&p->sent, __ATOMIC_RELAXED);
		sum.errors += __atomic_load_n(&p->errors, __ATOMIC_RELAXED);
		if (p->last_ns > sum.last_ns)
			sum.last_ns = p->last_ns;
		if (p->late_max_ns > sum.late_max_ns)
			sum.late_max_ns = p->late_max_ns;
	}
	return sum;
}

/* How far the last frame left from where its schedule has it, in millionths of the whole. */
static double pacing_error_ppm(const struct flow *flow, const struct progress *p)
{
	double ideal;

	if (!flow->rate || p->sent < 2)
		return 0;
	ideal = (double)(p->sent + p->errors - 1) * 1e9 / (double)flow->rate;
	return ((double)p->last_ns - ideal) * 1e6 / ideal;
}

static void report(bool final)
{
	uint64_t sent = 0, errors = 0;
	double elapsed = (double)(tool_now_ns() - run.start_ns) / 1e9;

	printf("{\"final\":%s,\"elapsed_s\":%.6f,\"flows\":[", final ? "true" : "false", elapsed);
	for (unsigned int i = 0; i < run.flow_count; i++) {
		const struct flow *flow = &run.flows[i];
		struct progress p = sum_flow(i);

		printf("%s{\"name\":\"%s\",\"sent\":%" PRIu64 ",\"errors\":%" PRIu64
		       ",\"last_s\":%.6f,\"late_max_us\":%" PRIu64 ",\"pacing_error_ppm\":%.1f}",
		       i ? "," : "", flow->name, p.sent, p.errors, (double)p.last_ns / 1e9,
		       p.late_max_ns / 1000, pacing_error_ppm(flow, &p));
		sent += p.sent;
		errors += p.errors;
	}
	printf("],\"sent\":%" PRIu64 ",\"errors\":%" PRIu64 "}\n", sent, errors);
}

static void start_workers(void)
{
	run.workers = calloc(run.worker_count, sizeof(*run.workers));
	if (!run.workers)
		die(TOOL_SYSTEM, "no memory for %u threads", run.worker_count);
	run.start_ns = tool_now_ns() + 20000000;
	for (unsigned int i = 0; i < run.worker_count; i++) {
		struct worker *w = &run.workers[i];

		w->cpu = run.cpus[i];
		w->fd = open_socket();
		for (unsigned int f = 0; f < run.flow_count; f++)
			w->flows[f].next = i;
		if (pthread_create(&w->thread, NULL, work, w))
			die(TOOL_SYSTEM, "can't start thread %u", i);
	}
}

int main(int argc, char **argv)
{
	uint64_t next;

	tool_setup();
	parse_arguments(argc, argv);
	tool_require_private_net(run.interface);
	run.ifindex = (int)if_nametoindex(run.interface);
	if (!run.ifindex)
		die(TOOL_SYSTEM, "no interface '%s' in this namespace", run.interface);
	for (unsigned int i = 0; i < run.flow_count; i++)
		frame_build(&run.flows[i].frame, &run.flows[i].spec);
	start_workers();
	next = run.start_ns + run.every_ns;
	while (run.every_ns && !tool_stopped && next < run.start_ns + run.duration_ns) {
		sleep_until(next);
		report(false);
		next += run.every_ns;
	}
	for (unsigned int i = 0; i < run.worker_count; i++)
		pthread_join(run.workers[i].thread, NULL);
	report(true);
	return tool_stopped == 2 ? TOOL_SYSTEM : 0;
}
