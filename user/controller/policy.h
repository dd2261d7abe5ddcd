/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The policy: a whole configuration (DESIGN §8), parsed, checked, defaults filled in, in base
 * units. User space only; the policy compiler turns it into maps.
 *
 * A policy is built by a load and owned by the caller until weir_policy_free; everything it
 * points to is its own. Read it freely; change it only by weir_policy_set, which keeps it
 * valid. Not thread-safe. Errors: 0 or -errno, with a sentence in err (controller/error.h).
 *
 * Times are nanoseconds, ratios millionths (5% is 50000, a k of 1.5 is 1500000). `given` says
 * that the file has the section or value; where it is false the value is the default.
 */
#pragma once

#include "controller/error.h"
#include "controller/prefix.h"
#include "controller/units.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define WEIR_POLICY_VERSION 1
#define WEIR_POLICY_FILE_MAX (16U << 20) /* bytes of a configuration file */
#define WEIR_POLICY_LIMITS_MAX 256U
#define WEIR_POLICY_SERVICES_MAX 256U
#define WEIR_POLICY_INTERFACES_MAX 64U
#define WEIR_POLICY_NAME_SIZE 32 /* [a-z0-9][a-z0-9_-]{0,30} and a NUL */
#define WEIR_POLICY_IFNAME_SIZE 16
#define WEIR_POLICY_SOCKET_SIZE 108
#define WEIR_POLICY_GROUP_SIZE 33
#define WEIR_POLICY_TEXT_SIZE 256
#define WEIR_POLICY_QUOTA_MAX 4096U	   /* sliding: stamps in the ring */
#define WEIR_POLICY_BURST_BYTES_MIN 65536U /* least default burst of a byte rate: one GSO skb */
#define WEIR_POLICY_COUNT_MAX 2147483647U
#define WEIR_POLICY_UNLIMITED UINT64_MAX /* gate.limit; 0 there is `block` */

enum weir_policy_attach { WEIR_POLICY_AUTO, WEIR_POLICY_NATIVE, WEIR_POLICY_GENERIC };
enum weir_policy_mode { WEIR_POLICY_ENFORCE, WEIR_POLICY_MONITOR };
enum weir_policy_hook { WEIR_POLICY_XDP, WEIR_POLICY_TC_INGRESS, WEIR_POLICY_TC_EGRESS };
enum weir_policy_untracked { WEIR_POLICY_PASS, WEIR_POLICY_DROP };
enum weir_policy_refuse { WEIR_POLICY_REFUSE_DROP, WEIR_POLICY_REFUSE_RESET };
enum weir_policy_trust { WEIR_POLICY_TRUST_KERNEL, WEIR_POLICY_TRUST_REPORT };
enum weir_policy_kind {
	WEIR_POLICY_BUCKET,
	WEIR_POLICY_SLIDING,
	WEIR_POLICY_PERIOD,
	WEIR_POLICY_GATE,
};
enum weir_policy_key_kind {
	WEIR_POLICY_KEY_SOURCE,
	WEIR_POLICY_KEY_DESTINATION,
	WEIR_POLICY_KEY_SOURCE_PORT, /* source address and source port */
	WEIR_POLICY_KEY_FLOW,	     /* both addresses, both ports, protocol */
	WEIR_POLICY_KEY_NONE,	     /* one for all */
};

/* Bits 0-255: protocol numbers, ICMP types. All zero: the dimension is not used. */
struct weir_bits256 {
	uint64_t words[4];
};

static inline bool weir_bits256_has(const struct weir_bits256 *bits, uint8_t bit)
{
	return bits->words[bit / 64] >> (bit % 64) & 1;
}

/* Ports or VLAN ids, ends included, host order, in the file's order. */
struct weir_range {
	uint16_t low;
	uint16_t high;
};

struct weir_ranges {
	struct weir_range *items;
	size_t count;
	size_t room;
};

struct weir_texts {
	char **items;
	size_t count;
	size_t room;
};

struct weir_policy_interface {
	char name[WEIR_POLICY_IFNAME_SIZE];
	enum weir_policy_attach mode;
	uint32_t line;
};

/* The first `own` prefixes are the configuration's, the others come from `files`. */
struct weir_policy_list {
	struct weir_prefixes prefixes;
	size_t own;
	struct weir_texts files; /* absolute paths, below WEIR_POLICY_TEXT_SIZE */
};

struct weir_policy_key {
	enum weir_policy_key_kind kind;
	uint8_t v4_length; /* 1-32, of source, destination and source+port; else 0 */
	uint8_t v6_length; /* 1-128 */
};

/* Every dimension that is used must match; within one, any of its values. */
struct weir_policy_match {
	enum weir_policy_hook hook; /* a limit acts at one hook: xdp by default */
	struct weir_bits256 protocols;
	struct weir_ranges to_ports;   /* destination ports of TCP, UDP, SCTP */
	struct weir_ranges from_ports; /* source ports */
	struct weir_prefixes from;
	struct weir_prefixes to;
	struct weir_bits256 icmp_types; /* of ICMP or ICMPv6, as protocols says */
	struct weir_ranges vlans;	/* outer tag, 0-4094 */
	struct weir_texts interfaces;	/* each one of the policy's interfaces */
	uint8_t flags_mask;		/* TCP flags looked at: (flags & mask) == value */
	uint8_t flags_value;
};

struct weir_policy_bucket {
	bool given;
	struct weir_rate rate; /* .bytes is the limit's unit, also beside a word */
	/* In the unit of rate. Default: one second of the rate, at least one packet, or
	 * WEIR_POLICY_BURST_BYTES_MIN bytes. 1 beside `block` and `unlimited`. */
	struct weir_amount burst;
};

struct weir_policy_sliding {
	bool given;
	uint64_t quota; /* 1 - WEIR_POLICY_QUOTA_MAX packets in any window */
	uint64_t window_ns;
};

struct weir_policy_period {
	bool given;
	uint64_t quota;
	uint64_t period_ns;
	bool align; /* periods begin at multiples of period_ns since 1970 UTC */
};

struct weir_policy_gate {
	bool given;
	uint64_t limit; /* connections at once; 0 block, WEIR_POLICY_UNLIMITED */
	enum weir_policy_refuse refuse;
};

struct weir_policy_ban {
	bool given;
	uint64_t after_count; /* refusals … */
	uint64_t after_ns;    /* … in this time */
	uint64_t for_ns;
};

struct weir_policy_limit {
	char name[WEIR_POLICY_NAME_SIZE];
	uint32_t line;		    /* where it begins in the file */
	enum weir_policy_kind kind; /* the one of these four that is given; the others are 0 */
	struct weir_policy_bucket bucket;
	struct weir_policy_sliding sliding;
	struct weir_policy_period period;
	struct weir_policy_gate gate;
	struct weir_policy_key key;
	struct weir_policy_match match;
	enum weir_policy_mode mode;
	enum weir_policy_untracked untracked; /* default pass */
	uint64_t keys; /* 1024 - 1Mi of a ledger of its own; 0: see weir_policy_own_keys */
	struct weir_policy_ban ban;
};

/* The knobs of the seeds' presets; see user/lib for what they do. */
struct weir_policy_breaker {
	bool given;
	uint64_t k;	     /* ratio, 1.5 */
	uint64_t floor;	     /* ratio, 1.1 */
	uint64_t protection; /* ratio: calls, 5 */
	uint64_t probe_ns;   /* 1 s */
	uint64_t size;	     /* buckets, 40 */
	uint64_t window_ns;  /* 10 s */
};

struct weir_policy_shedder {
	bool given;
	uint64_t size;	     /* buckets, 50 */
	uint64_t window_ns;  /* 5 s */
	uint64_t cpu;	     /* thousandths, 900 */
	uint64_t latency_ns; /* 1 s */
	uint64_t beta;	     /* ratio, 0.9 */
	uint64_t cool_ns;    /* 1 s */
	uint64_t floor;	     /* ratio, 0.1 */
};

/*
 * Moves the rate of a bucket or the limit of a gate. start, floor and ceiling are in its unit;
 * for a gate they are levels: per_ns 0, amount the number of connections.
 */
struct weir_policy_governor {
	bool given;
	char control[WEIR_POLICY_NAME_SIZE]; /* a limit of this policy: bucket or gate */
	struct weir_rate start;		     /* default: floor */
	struct weir_rate floor;
	struct weir_rate ceiling; /* default: what the file gives the limit (may be unlimited) */
	uint64_t high;		  /* millionths, 5% */
	uint64_t low;		  /* millionths, 1% */
	uint64_t window_ns;	  /* 2 s */
};

struct weir_policy_service {
	char name[WEIR_POLICY_NAME_SIZE];
	uint32_t line;
	struct weir_policy_match match;	    /* TCP and/or UDP with to_ports */
	uint64_t deadline_ns;		    /* 0: none */
	char cgroup[WEIR_POLICY_TEXT_SIZE]; /* absolute path; "": the host's CPU */
	enum weir_policy_trust trust; /* outcomes from the kernel's exchanges, or `weir report` */
	struct weir_policy_breaker breaker;
	struct weir_policy_shedder shedder;
	struct weir_policy_governor governor;
};

struct weir_policy_metrics {
	char listen[WEIR_POLICY_TEXT_SIZE]; /* address:port, [v6]:port, or off */
	bool dashboard;			    /* and its reports; false: /metrics alone */
	struct weir_texts hosts; /* names it answers to, beside addresses, localhost */
};

struct weir_policy {
	char *file; /* as it was named to the load */
	struct {
		uint32_t mode, lists, limits;
	} lines; /* where these sections begin; 0: not in the file */
	uint64_t version;
	enum weir_policy_mode mode; /* monitor: no limit refuses, whatever its own mode */
	struct {
		uint64_t keys; /* 1024 - 16Mi, a power of two (rounded up); default 262144 */
	} ledger;
	struct weir_rate sample; /* sampled refusals a second, in all: 100pps; block for none */
	/* May be empty: the controller then limits nothing, and must say so. */
	struct weir_policy_interface *interfaces;
	size_t interface_count;
	struct {
		struct weir_policy_list allow;
		struct weir_policy_list deny;
	} lists;
	struct weir_policy_limit *limits;
	/* What the file gives them, in the same order, whatever `set` did since: plain copies. */
	struct weir_policy_limit *written;
	size_t limit_count;
	struct weir_policy_service *services;
	size_t service_count;
	struct {
		char socket[WEIR_POLICY_SOCKET_SIZE]; /* /run/weir/weir.sock */
		char group[WEIR_POLICY_GROUP_SIZE];   /* weir */
	} control;
	struct weir_policy_metrics metrics;
};

/* Reads a file. -ENOENT, -EACCES …; -EINVAL for what it says; -EFBIG above the maximum. The
 * sentence begins with file:line: where there is a line. *policy is set only on success. */
int weir_policy_load_file(const char *path, struct weir_policy **policy, struct weir_error *err);
/* The same from memory; `name` stands for the file in the sentences. */
int weir_policy_load_text(const char *text, size_t length, const char *name,
			  struct weir_policy **policy, struct weir_error *err);
void weir_policy_free(struct weir_policy *policy); /* NULL is fine */

/* Canonical YAML that loads back to an equal policy, defaults spelt out. -EIO if out fails. */
int weir_policy_print(const struct weir_policy *policy, FILE *out);
/* The same as JSON in base units, {"schema": 1, …}: times in ns, ratios as numbers, a rate as
 * {amount, per_ns, unit} or its word, prefixes as text, ports as [low, high]; lists hold what
 * came from their files too. The caller owns it. */
#define WEIR_POLICY_JSON_SCHEMA 1
json_t *weir_policy_json(const struct weir_policy *policy);
/* Whether two policies mean the same; file names and lines don't count. */
bool weir_policy_equal(const struct weir_policy *a, const struct weir_policy *b);
/* The same for one limit: what a reload needs to know before it keeps state. */
bool weir_policy_limit_equal(const struct weir_policy_limit *a, const struct weir_policy_limit *b);

#define WEIR_POLICY_OWN_KEYS_MIN 1024U
#define WEIR_POLICY_OWN_KEYS_MAX (1U << 20)
/* Of all rings of a limit: what may be asked for, and what the default keeps to. */
#define WEIR_POLICY_RINGS_BYTES_MAX (4ULL << 30)
#define WEIR_POLICY_RINGS_BYTES (64ULL << 20)

/*
 * How many keys a limit has room for in a ledger of its own, a power of two: what `keys` says,
 * else as many as the shared ledger has and 64 MiB of rings hold, at least 1024 and at most
 * 1Mi; 16 for a limit with one key for all. 0: it counts in the shared ledger.
 */
uint64_t weir_policy_own_keys(const struct weir_policy *policy,
			      const struct weir_policy_limit *limit);

/* NULL if there is none. */
struct weir_policy_limit *weir_policy_find_limit(const struct weir_policy *policy,
						 const char *name);
struct weir_policy_service *weir_policy_find_service(const struct weir_policy *policy,
						     const char *name);

/* The words of the language for each enum: "xdp", "tc-ingress"; "bucket"; "source+port". */
const char *weir_policy_hook_name(enum weir_policy_hook hook);
const char *weir_policy_kind_name(enum weir_policy_kind kind);
const char *weir_policy_key_name(enum weir_policy_key_kind kind);
const char *weir_policy_mode_name(enum weir_policy_mode mode);

/* One FIELD=VALUE of `weir set`. */
struct weir_policy_change {
	const char *field; /* rate burst quota window period align limit refuse mode untracked
			    * ban.after ban.for, as far as the limit has them */
	const char *value; /* as in the file */
};

/*
 * Changes a limit: all of the changes or, on any error, none. A default burst follows its
 * rate. -ENOENT: no such limit, or no such field (the sentence lists the fields it has).
 */
int weir_policy_set(struct weir_policy *policy, const char *limit_name,
		    const struct weir_policy_change *changes, size_t count, struct weir_error *err);
/* The fields of a limit that were set to something else than the file says, in its words:
 * {"rate": {"file": "1000pps", "now": "500pps"}}. NULL: no memory. */
json_t *weir_policy_changes(const struct weir_policy *policy,
			    const struct weir_policy_limit *limit);
/* Takes back what was set: as `written` says. -ENOENT. */
int weir_policy_unset(struct weir_policy *policy, const char *limit_name, struct weir_error *err);
/* For a policy that was not loaded from the file itself: `written` as the other has it, where they
 * have limits of one name and kind. */
void weir_policy_write_as(struct weir_policy *policy, const struct weir_policy *other);
/* One change. */
int weir_policy_set_field(struct weir_policy *policy, const char *limit_name, const char *field,
			  const char *value, struct weir_error *err);

/* What a policy may ask of the data plane: bit numbers of a mask. */
enum weir_feature {
	WEIR_FEATURE_BUCKET,
	WEIR_FEATURE_BYTES, /* a bucket whose rate counts bytes */
	WEIR_FEATURE_SLIDING,
	WEIR_FEATURE_PERIOD,
	WEIR_FEATURE_PERIOD_ALIGN,
	WEIR_FEATURE_GATE,
	WEIR_FEATURE_GATE_RESET,
	WEIR_FEATURE_KEY_SOURCE,
	WEIR_FEATURE_KEY_DESTINATION,
	WEIR_FEATURE_KEY_SOURCE_PORT,
	WEIR_FEATURE_KEY_FLOW,
	WEIR_FEATURE_KEY_NONE,
	WEIR_FEATURE_MATCH_PROTO,
	WEIR_FEATURE_MATCH_TO_PORT,
	WEIR_FEATURE_MATCH_FROM_PORT,
	WEIR_FEATURE_MATCH_FROM,
	WEIR_FEATURE_MATCH_TO,
	WEIR_FEATURE_MATCH_FLAGS,
	WEIR_FEATURE_MATCH_ICMP,
	WEIR_FEATURE_MATCH_VLAN,
	WEIR_FEATURE_MATCH_INTERFACE,
	WEIR_FEATURE_HOOK_TC_INGRESS,
	WEIR_FEATURE_HOOK_TC_EGRESS,
	WEIR_FEATURE_MONITOR, /* of a limit, or of all */
	WEIR_FEATURE_BAN,
	WEIR_FEATURE_MANY_LIMITS, /* more than one */
	WEIR_FEATURE_LISTS,
	WEIR_FEATURE_SERVICES,
	WEIR_FEATURE_EXCHANGES, /* a service that trusts the kernel */
	WEIR_FEATURE_BREAKER,
	WEIR_FEATURE_SHEDDER,
	WEIR_FEATURE_GOVERNOR,
	WEIR_FEATURE_REPORT, /* a service that trusts reports */
	WEIR_FEATURE_COUNT
};

#define WEIR_FEATURE_BIT(feature) (1ULL << (feature))
#define WEIR_FEATURE_ALL ((1ULL << WEIR_FEATURE_COUNT) - 1)

/* -EOPNOTSUPP for the first thing in the file that `supported` (a mask of WEIR_FEATURE_BIT)
 * lacks, naming file, line and field: it is not built yet, and never ignored. */
int weir_policy_check_features(const struct weir_policy *policy, uint64_t supported,
			       struct weir_error *err);
