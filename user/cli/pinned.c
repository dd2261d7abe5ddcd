// SPDX-License-Identifier: GPL-2.0
#include "cli/pinned.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "controller/clock.h"
#include "cli/client.h"

static int fail(const struct weir_cli *cli, int error)
{
	switch (error) {
	case -ENOENT:
		return weir_cli_fail_text(cli, WEIR_EXIT_FAILED,
					  "no controller answers at '%s' and nothing is pinned in "
					  "'%s': start it with `weir run`, or give its --pins",
					  weir_client_socket(cli), cli->pins);
	case -EPROTO:
		return weir_cli_fail_text(cli, WEIR_EXIT_FAILED,
					  "pins '%s': of another version of weir: start the "
					  "controller with `weir run`",
					  cli->pins);
	case -EPERM:
	case -EACCES:
		return weir_cli_fail_text(cli, WEIR_EXIT_FAILED,
					  "no controller answers at '%s', and to read the pins "
					  "'%s' takes root",
					  weir_client_socket(cli), cli->pins);
	default:
		return weir_cli_fail_text(cli, WEIR_EXIT_FAILED, "pins '%s': %s", cli->pins,
					  strerror(-error));
	}
}

int weir_pinned_open(struct weir_pinned **pinned, const struct weir_cli *cli)
{
	struct weir_pinned *made = calloc(1, sizeof(*made));
	int rc = made ? weir_dataplane_open(&made->dataplane, cli->pins) : -ENOMEM;

	if (rc) {
		free(made);
		return fail(cli, rc);
	}
	fprintf(stderr, "weir: the controller is down: read from the pins in %s\n", cli->pins);
	made->view = (struct weir_view){
		.dataplane = &made->dataplane,
		.interfaces = made->interfaces,
		.interface_count = weir_report_pinned_interfaces(&made->dataplane, made->interfaces,
								 WEIR_INTERFACES_MAX),
		.now_ns = weir_monotonic_ns(),
	};
	*pinned = made;
	return WEIR_EXIT_OK;
}

void weir_pinned_measure(struct weir_pinned *pinned)
{
	const struct timespec while_ns = { .tv_nsec = 200000000 };

	weir_rates_update(&pinned->rates, &pinned->dataplane, weir_monotonic_ns());
	nanosleep(&while_ns, NULL);
	weir_rates_update(&pinned->rates, &pinned->dataplane, weir_monotonic_ns());
	pinned->view.rates = &pinned->rates;
	pinned->view.now_ns = weir_monotonic_ns();
}

int weir_pinned_read_lists(struct weir_pinned *pinned, const struct weir_cli *cli)
{
	struct weir_error err;

	if (weir_lists_look_all(&pinned->lists, &pinned->dataplane, &err))
		return weir_cli_fail(cli, WEIR_EXIT_FAILED, &err);
	pinned->view.lists = pinned->lists.tables;
	return WEIR_EXIT_OK;
}

void weir_pinned_close(struct weir_pinned *pinned)
{
	weir_lists_close(&pinned->lists);
	weir_dataplane_unmap(&pinned->dataplane);
	free(pinned);
}
