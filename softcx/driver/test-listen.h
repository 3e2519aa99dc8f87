/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-listen.h - rdma_cm without librdmacm, for tests in which its ids are not destroyed. The header of the
 * kernel's commands and that of the library cannot be included together.
 */
#ifndef SOFTCX_DRIVER_TEST_LISTEN_H
#define SOFTCX_DRIVER_TEST_LISTEN_H

#include <stdint.h>

/** An rdma_cm file with an id that listens on the loopback address. Fails the test. */
int listen_by_hand(uint16_t port);

#endif
