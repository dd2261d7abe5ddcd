/* SPDX-License-Identifier: GPL-2.0 */
/* libweir, all of it. api.h says what every header keeps to. */
#pragma once

#include "api.h"

#include "backoff.h"
#include "breaker.h"
#include "bucket.h"
#include "deadline.h"
#include "gate.h"
#include "governor.h"
#include "period.h"
#include "shedder.h"
#include "sliding.h"
#include "window.h"
