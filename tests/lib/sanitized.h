/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sanitized.h - whether AddressSanitizer or ThreadSanitizer checks every access, so that a test does less,
 * for the same time.
 */
#ifndef TESTS_LIB_SANITIZED_H
#define TESTS_LIB_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 }; /* by gcc */
#elif !defined(__has_feature)
enum { SANITIZED = 0 };
#else
enum { SANITIZED = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) }; /* by clang */
#endif

#endif
