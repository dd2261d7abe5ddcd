// SPDX-License-Identifier: GPL-2.0
#include "controller/dashboard.h"

static const unsigned char page[] = {
#include "dashboard/index.html.inc"
};
static const unsigned char style[] = {
#include "dashboard/style.css.inc"
};
static const unsigned char script[] = {
#include "dashboard/dashboard.js.inc"
};
static const unsigned char icon[] = {
#include "dashboard/icon.svg.inc"
};

const struct weir_dashboard_file weir_dashboard_files[WEIR_DASHBOARD_FILES] = {
	{ "/", "text/html; charset=utf-8", page, sizeof(page) },
	{ "/style.css", "text/css; charset=utf-8", style, sizeof(style) },
	{ "/dashboard.js", "text/javascript; charset=utf-8", script, sizeof(script) },
	{ "/icon.svg", "image/svg+xml", icon, sizeof(icon) },
};
