// SPDX-License-Identifier: GPL-2.0
#include "controller/metrics_text.h"

#include <math.h>

void weir_metric_begin(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n') {
			fputs("\\n", out);
			continue;
		}
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
}

static void print_name(FILE *out, const char *name, const char *const *labels)
{
	fputs(name, out);
	for (size_t i = 0; labels && labels[i]; i += 2) {
		fprintf(out, "%c%s=\"", i ? ',' : '{', labels[i]);
		print_escaped(out, labels[i + 1]);
		fputc('"', out);
	}
	fputs(labels ? "} " : " ", out);
}

void weir_metric_count(FILE *out, const char *name, const char *const *labels, uint64_t value)
{
	print_name(out, name, labels);
	fprintf(out, "%llu\n", (unsigned long long)value);
}

void weir_metric_value(FILE *out, const char *name, const char *const *labels, double value)
{
	print_name(out, name, labels);
	if (isinf(value))
		fputs(value > 0 ? "+Inf\n" : "-Inf\n", out);
	else if (isnan(value))
		fputs("NaN\n", out);
	else
		fprintf(out, "%.15g\n", value);
}

void weir_metric_one(FILE *out, const char *name, const char *type, const char *help,
		     double value)
{
	weir_metric_begin(out, name, type, help);
	weir_metric_value(out, name, NULL, value);
}
