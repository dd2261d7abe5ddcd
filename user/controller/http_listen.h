/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses of the HTTP server; others include http.h. */
#pragma once

#include "controller/error.h"

/* A listening socket that doesn't block, on an address as the policy's metrics.listen; -errno. */
int weir_http_listen(const char *listen, struct weir_error *err);
