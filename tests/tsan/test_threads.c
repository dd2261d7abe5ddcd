// SPDX-License-Identifier: GPL-2.0
/*
 * What include/weir/api.h says about threads, under ThreadSanitizer: the pure steps over one word
 * by compare-and-swap, and different objects in different threads. Built with -fsanitize=thread;
 * a report makes it exit 66.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "harness.h"
#include "weir/weir.h"

#define THREADS 2
#define ROUNDS 50000

struct shared {
	struct weir_bucket_conf bucket_conf;
	_Atomic uint64_t tat;
	struct weir_gate_conf gate_conf;
	_Atomic uint64_t gate;
	_Atomic uint64_t inside, most_inside;
	_Atomic uint64_t admitted;
};

/* The clock of both: the round, so that they contend for the same tokens. */
static void *take_by_cas(void *argument)
{
	struct shared *shared = argument;
	uint64_t cost = weir_bucket_cost(&shared->bucket_conf, 1);

	for (uint64_t now = 16; now < 16 * ROUNDS; now += 16) {
		uint64_t tat = atomic_load(&shared->tat), next;

		while (weir_bucket_step(tat, &shared->bucket_conf, now, cost, &next))
			if (atomic_compare_exchange_weak(&shared->tat, &tat, next)) {
				atomic_fetch_add(&shared->admitted, 1);
				break;
			}
	}
	return NULL;
}

static void run_both(void *(*body)(void *), void *first, void *second)
{
	pthread_t threads[THREADS];

	CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[0], NULL, body, first), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[1], NULL, body, second), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void one_bucket_by_compare_and_swap(void)
{
	struct shared shared = { .tat = 0 };
	uint64_t cost, most;

	/* A token every 100 ns, 50 at most; a round is a nanosecond. */
	CU_ASSERT_EQUAL_FATAL(weir_bucket_conf_init(&shared.bucket_conf, 1e7, 50, 1), 0);
	run_both(take_by_cas, &shared, &shared);
	cost = weir_bucket_cost(&shared.bucket_conf, 1);
	most = 50 + 16 * ROUNDS / cost;
	CU_ASSERT(shared.admitted <= most);
	CU_ASSERT(shared.admitted >= most - 2);
}

static void *pass_the_gate(void *argument)
{
	struct shared *shared = argument;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t word = atomic_load(&shared->gate), next, inside;
		bool entered = false;

		while (!entered && weir_gate_step(word, &shared->gate_conf, &next))
			entered = atomic_compare_exchange_weak(&shared->gate, &word, next);
		if (!entered)
			continue;
		atomic_fetch_add(&shared->admitted, 1);
		inside = atomic_fetch_add(&shared->inside, 1) + 1;
		if (inside > atomic_load(&shared->most_inside))
			atomic_store(&shared->most_inside, inside);
		atomic_fetch_sub(&shared->inside, 1);
		word = atomic_load(&shared->gate);
		while (!atomic_compare_exchange_weak(&shared->gate, &word, weir_gate_back(word)))
			;
	}
	return NULL;
}

static void one_gate_by_compare_and_swap(void)
{
	struct shared shared = { .gate_conf = { .limit = 1 } };

	run_both(pass_the_gate, &shared, &shared);
	CU_ASSERT_EQUAL(shared.most_inside, 1);
	CU_ASSERT_EQUAL(shared.gate, 0);
	CU_ASSERT(shared.admitted > 0);
}

/* Everything at once on this thread's own objects: nothing is shared behind the scenes. */
static void *use_all(void *argument)
{
	struct weir_breaker *breaker = weir_breaker_new(NULL, 0);
	struct weir_shedder *shedder = weir_shedder_new(NULL, 0);
	struct weir_sliding *sliding = weir_sliding_new(10, 1000);
	struct weir_bucket bucket = weir_bucket_new(1e9, 5, 0);
	struct weir_period period = weir_period_new(5, 100, true);
	struct weir_gate gate = weir_gate_new(3);
	struct weir_attempts counts = { 0, 0 };
	struct weir_governor governor = weir_governor_new(NULL, NULL, 0, counts);
	uint64_t *admitted = argument;

	for (int64_t now = 0; now < ROUNDS / 10; now++) {
		struct weir_promise promise;
		struct weir_ticket ticket;

		if (weir_breaker_allow(breaker, now, 0.5, &promise))
			weir_promise_fail(&promise, now);
		if (weir_shedder_allow(shedder, now, 950, &ticket))
			weir_ticket_pass(&ticket, now + 1);
		*admitted += weir_sliding_take(sliding, now);
		*admitted += weir_bucket_take(&bucket, now, 1);
		*admitted += weir_period_take(&period, now) != WEIR_QUOTA_OVER;
		*admitted += weir_gate_enter(&gate);
		*admitted += (uint64_t)weir_backoff_delay(NULL, 1, 0.5, 0) > 0;
		counts.success++;
		weir_governor_tick(&governor, now, counts);
	}
	weir_breaker_free(breaker);
	weir_shedder_free(shedder);
	weir_sliding_free(sliding);
	return NULL;
}

static void own_objects_share_nothing(void)
{
	uint64_t admitted[THREADS] = { 0, 0 };

	run_both(use_all, &admitted[0], &admitted[1]);
	CU_ASSERT(admitted[0] > 0);
	CU_ASSERT_EQUAL(admitted[0], admitted[1]);
}

WEIR_TESTS("threads", TEST(one_bucket_by_compare_and_swap), TEST(one_gate_by_compare_and_swap),
	   TEST(own_objects_share_nothing))
