// SPDX-License-Identifier: GPL-2.0
#include "weir/deadline.h"

#include <stddef.h>

#include "span.h"

struct weir_deadline weir_deadline_start(int64_t budget_ns, int64_t now_ns)
{
	return (struct weir_deadline){ .budget_ns = budget_ns, .started_ns = now_ns };
}

bool weir_deadline_remaining(const struct weir_deadline *deadline, int64_t now_ns, int64_t *left_ns)
{
	bool finite = deadline && deadline->budget_ns > 0;
	uint64_t spent;

	if (finite && left_ns) {
		spent = weir_span_since(now_ns, deadline->started_ns);
		*left_ns = spent < (uint64_t)deadline->budget_ns
				   ? deadline->budget_ns - (int64_t)spent
				   : 0;
	} else if (left_ns) {
		*left_ns = WEIR_FOREVER_NS;
	}
	return finite;
}

bool weir_deadline_expired(const struct weir_deadline *deadline, int64_t now_ns)
{
	int64_t left_ns;

	return weir_deadline_remaining(deadline, now_ns, &left_ns) && !left_ns;
}
