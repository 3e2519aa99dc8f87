/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * next.h - for the functions of the C library that the driver has in front of its own.
 */
#ifndef SOFTCX_DRIVER_NEXT_H
#define SOFTCX_DRIVER_NEXT_H

#include <dlfcn.h>

#define NEXT_EXPORT __attribute__((visibility("default")))

/* Defines next(), the definition of @name behind ours. Two threads may both look it up: the same result. */
#define NEXT(name)                                                                                           \
	static __typeof__(&name) next;                                                                       \
	if (!next)                                                                                           \
	next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#endif
