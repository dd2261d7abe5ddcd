/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who is inside a gate, by the sockets: a connection that a listener accepted enters every gate
 * whose match it fits, as if its SYN were looked at again, and leaves those that it entered,
 * whatever the policy is by then, when its socket closes. So no lost FIN, forged RST or reload
 * makes the count wrong. Whom the allow list names takes no place.
 */
#pragma once

#include "exchanges.bpf.h"
#include "process.bpf.h"
#include "socket.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, uint32_t);
	__type(value, struct weir_context);
} weir_socket_scratch SEC(".maps");

/* A walk can be interrupted by an event, an event by none: the kernel lets no program nest. */
enum weir_scratch {
	WEIR_SCRATCH_EVENT,
	WEIR_SCRATCH_WALK,
};

static __always_inline struct weir_connection_counts *weir_connections_at(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&weir_connections, &zero);
}

#define WEIR_CONNECTIONS_ADD(field, n)                                                             \
	do {                                                                                       \
		struct weir_connection_counts *all = weir_connections_at();                        \
		if (all)                                                                           \
			__sync_fetch_and_add(&all->field, n);                                      \
	} while (0)

/* ---- recount ---- */

static __always_inline void weir_recount_add(uint64_t tag, uint64_t n)
{
	struct weir_recount *recount = bpf_map_lookup_elem(&weir_recounts, &tag);
	struct weir_recount none = { 0 };

	if (!recount) {
		bpf_map_update_elem(&weir_recounts, &tag, &none, BPF_NOEXIST);
		recount = bpf_map_lookup_elem(&weir_recounts, &tag);
	}
	if (recount)
		__sync_fetch_and_add(&recount->inside, n);
	else
		WEIR_CONNECTIONS_ADD(overflowed, 1);
}

/* ---- enter ---- */

/* Whose connection it is. */
enum weir_whose {
	WEIR_NOBODYS,	/* no gate and no service asks about it */
	WEIR_OURS,	/* of a namespace whose sockets all count */
	WEIR_ELSEWHERE, /* of another: it counts where its SYN passed a gate here */
};

struct weir_entering {
	struct weir_context *context;
	struct weir_socket *socket;
	uint32_t walk;
	uint32_t entered;
	enum weir_whose whose;
};

/* When the connection's SYN asked at the gate that the charge is open for. */
static __always_inline uint64_t weir_pending_take(struct weir_context *context)
{
	uint64_t connection = weir_pending_key(context);
	uint64_t since = weir_pending_since(connection, weir_pending_slice(context->now_ticks));

	bpf_map_delete_elem(&weir_pending, &connection);
	return since ? weir_pending_slice(since) : WEIR_NOT_PENDING;
}

static __always_inline struct weir_set *weir_gate_set(uint32_t index)
{
	return bpf_map_lookup_elem(&weir_ledger, &index);
}

/* The word of the gate's key in the ledger, NULL where it has no place. */
static __always_inline uint64_t *weir_gate_word(uint64_t tag)
{
	struct weir_charge charge = { .tag = tag };
	struct weir_set *first, *second, *set;
	uint32_t way;

	first = weir_gate_set(weir_tag_first(tag, weir_shape.sets));
	second = weir_gate_set(weir_tag_second(tag, weir_shape.sets, &weir_shape.seeds));
	set = first && second ? weir_place_find(&charge, first, second) : 0;
	if (!set)
		return 0;
	way = charge.way;
	weir_opaque(way);
	return &set->state[way & (WEIR_WAYS - 1)];
}

/* Whether the gate counts the socket: its key has its place in the ledger. */
__noinline int weir_gate_stands(const struct weir_socket_gate *gate)
{
	return gate && gate->tag && weir_gate_word(gate->tag);
}

/*
 * Forgets the gates that are no more, or count by another key by now: their places were given
 * back when the policy changed. How many are left.
 */
__noinline int weir_socket_tidy(struct weir_socket *socket)
{
	uint32_t kept = 0, at;

	if (!socket)
		return WEIR_SOCKET_GATES;
	_Pragma("clang loop unroll(disable)")
	for (uint32_t i = 0; i < WEIR_SOCKET_GATES; i++) {
		struct weir_socket_gate gate = socket->gate[i];

		socket->gate[i] = (struct weir_socket_gate){ 0 };
		if (!weir_gate_stands(&gate))
			continue;
		at = kept++;
		weir_opaque(at);
		socket->gate[at & (WEIR_SOCKET_GATES - 1)] = gate;
	}
	socket->gates = kept;
	return kept;
}

static __always_inline bool weir_socket_is_in(const struct weir_socket *socket, uint64_t tag)
{
	for (int i = 0; i < WEIR_SOCKET_GATES; i++) {
		if (socket->gate[i].tag == tag)
			return true;
	}
	return false;
}

static __always_inline void weir_gate_enter(struct weir_entering *entering,
					    const struct weir_limit *limit, uint32_t index)
{
	struct weir_context *context = entering->context;
	struct weir_charge *charge = &context->charge;
	struct weir_socket *socket = entering->socket;
	uint32_t gates = socket->gates;

	weir_charge_open(context, limit, index, WEIR_ENTER);
	weir_charge_aim(charge, limit);
	if (weir_socket_is_in(socket, charge->tag))
		return;
	charge->cost = weir_pending_take(context);
	if (entering->whose == WEIR_ELSEWHERE && charge->cost == WEIR_NOT_PENDING)
		return;
	if (gates >= WEIR_SOCKET_GATES)
		gates = weir_socket_tidy(socket);
	if (gates >= WEIR_SOCKET_GATES || weir_take_again(context, WEIR_AGAIN) > WEIR_NEW) {
		WEIR_CONNECTIONS_ADD(uncounted, 1);
		return;
	}
	/* The verifier of 6.1 forgets the bound over the call. */
	weir_opaque(gates);
	socket->gate[gates & (WEIR_SOCKET_GATES - 1)] = (struct weir_socket_gate){
		.tag = charge->tag,
		.slot = limit->slot,
	};
	socket->gates = gates + 1;
	entering->entered++;
	if (entering->walk)
		weir_recount_add(charge->tag, 1);
}

/* The next limit of context->left that is a gate, WEIR_LIMITS_MAX where there is none. */
static __always_inline uint32_t weir_left_next(struct weir_bitmap *bitmap)
{
	uint32_t word;
	uint64_t left;

	for (word = 0; word < WEIR_BITMAP_WORDS - 1; word++)
		if (bitmap->word[word])
			break;
	left = bitmap->word[word];
	if (!left)
		return WEIR_LIMITS_MAX;
	bitmap->word[word] = left & (left - 1);
	return word * 64 + weir_lowest_bit(left);
}

static int weir_enter_turn(uint32_t turn __attribute__((unused)), struct weir_entering *entering)
{
	struct weir_context *context = entering->context;
	uint32_t index = weir_left_next(&context->left);
	const struct weir_limit *limit = weir_limit_at(context->generation, index);

	if (index >= WEIR_LIMITS_MAX)
		return 1;
	if (limit->kind == WEIR_KIND_GATE)
		weir_gate_enter(entering, limit, index);
	return 0;
}

/*
 * Whether the connection is one that anybody here asks about: then context->packet stands for
 * it, and *service is its service, index + 1; services look at our namespaces alone.
 */
static __always_inline enum weir_whose weir_socket_look(struct weir_context *context,
							const struct sock_common *common,
							uint32_t *service)
{
	bool ours = weir_is_counted_here(common);
	const struct weir_policy_head *head;
	const struct weir_service_policy *found;
	uint32_t index;

	*service = 0;
	context->generation = weir_board.active.generation & 1;
	head = &weir_board.policy[context->generation];
	if ((!head->gates && !(head->services && ours)) ||
	    !weir_packet_of(&context->packet, common))
		return WEIR_NOBODYS;
	if (!ours)
		return WEIR_ELSEWHERE;
	if (!head->services)
		return WEIR_OURS;
	index = weir_service_at_port(context->packet.destination_port) - 1;
	found = bpf_map_lookup_elem(&weir_services, &index);
	if (found && weir_service_fits(found, &context->packet, index))
		*service = index + 1;
	return WEIR_OURS;
}

/* Fills context->left with the limits that match the connection: false if none can be a gate. */
static __always_inline bool weir_socket_match(struct weir_context *context)
{
	const uint32_t unknown = WEIR_BY_INTERFACE | WEIR_BY_VLAN;
	const struct weir_policy_head *head = &weir_board.policy[context->generation & 1];

	if (!head->gates)
		return false;
	context->cpu = bpf_get_smp_processor_id();
	context->lists = weir_board.lists_live.used;
	context->now_ns = weir_now_ns();
	context->now_ticks = context->now_ns << WEIR_TICK_SHIFT;
	if (weir_listed(context) == WEIR_PATH_ALLOWED)
		return false;
	for (int i = 0; i < WEIR_BITMAP_WORDS; i++)
		context->limits.word[i] = head->hooks[WEIR_HOOK_XDP].word[i] |
					  head->hooks[WEIR_HOOK_TC_INGRESS].word[i];
	weir_match_rows(context, head->dimensions & ~unknown);
	context->left = context->limits;
	return weir_bitmap_any(&context->left);
}

/* Into every gate of context->left that the socket is not in yet: how many. */
static __always_inline uint32_t weir_socket_enter(struct weir_context *context,
						  struct weir_socket *socket, uint32_t walk,
						  enum weir_whose whose)
{
	struct weir_entering entering = {
		.context = context,
		.socket = socket,
		.walk = walk,
		.whose = whose,
	};

	bpf_loop(WEIR_LIMITS_MAX, weir_enter_turn, &entering, 0);
	return entering.entered;
}

/* ---- leave ---- */

/* More than anybody loses in a row; a recount would give the place back. */
#define WEIR_LEAVE_TRIES 32

__noinline int weir_gate_leave(const struct weir_socket_gate *gate, uint64_t now_ticks)
{
	uint64_t empty = weir_pending_until(weir_pending_slice(now_ticks)), *state, word;

	if (!gate)
		return 0;
	state = weir_gate_word(gate->tag);
	if (!state)
		return 0;
	_Pragma("clang loop unroll(disable)")
	for (int i = 0; i < WEIR_LEAVE_TRIES; i++) {
		word = weir_once(*state);
		if (weir_swap(state, word, weir_gate_left(word, empty)) == word)
			return 1;
	}
	return 0;
}

/* The socket has left: no recount counts it any more. No recount has this number. */
#define WEIR_WALK_GONE 0xffffffffU

static __always_inline void weir_socket_leave(struct weir_socket *socket, uint64_t now_ticks)
{
	uint32_t walk = weir_board.where.walk;
	/* A socket elsewhere may be counted at this moment: see weir_walked_elsewhere. */
	uint32_t counted = __sync_lock_test_and_set(&socket->walk, WEIR_WALK_GONE);

	_Pragma("clang loop unroll(disable)")
	for (uint32_t i = 0; i < WEIR_SOCKET_GATES && i < socket->gates; i++) {
		weir_gate_leave(&socket->gate[i], now_ticks);
		if (walk && counted == walk)
			weir_recount_add(socket->gate[i].tag, -1ULL);
		WEIR_CONNECTIONS_ADD(left, 1);
	}
	socket->gates = 0;
}

/* ---- healing ---- */

/* What the ledger has at a place beyond what the recount found. */
static __always_inline void weir_settle_place(struct weir_set *set, uint32_t way,
					      struct weir_settle *settle)
{
	uint64_t word = weir_once(set->state[way]), tag = weir_once(set->tag[way]);
	struct weir_recount none = { 0 }, *recount;
	int64_t drift;

	if (!(word & WEIR_GATE_INSIDE))
		return;
	recount = bpf_map_lookup_elem(&weir_recounts, &tag);
	drift = weir_gate_count(word) - (recount ? weir_once(recount->inside) : 0);
	if (!settle->heal) {
		none.drift = drift;
		if (recount)
			recount->drift = drift;
		else
			bpf_map_update_elem(&weir_recounts, &tag, &none, BPF_ANY);
		settle->keys += drift != 0;
		return;
	}
	if (!drift || !recount || recount->drift != drift)
		return;
	if (drift == (int64_t)weir_gate_count(word))
		drift = weir_swap(&set->state[way], word,
				  weir_pending_until(weir_pending_slice(weir_now_ns()
									<< WEIR_TICK_SHIFT))) ==
			word ? drift : 0;
	else
		drift = weir_swap(&set->state[way], word, word - drift) == word ? drift : 0;
	settle->keys += drift != 0;
	WEIR_CONNECTIONS_ADD(recounted, drift < 0 ? -drift : drift);
}

static int weir_settle_turn(uint32_t index, struct weir_settle *settle)
{
	struct weir_set *set = bpf_map_lookup_elem(&weir_ledger, &index);

	if (!set)
		return 1;
	_Pragma("clang loop unroll(disable)")
	for (uint32_t way = 0; way < WEIR_WAYS; way++)
		weir_settle_place(set, way, settle);
	return 0;
}
