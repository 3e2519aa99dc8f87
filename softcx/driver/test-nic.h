/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-nic.h - the NIC of "softcx run", for tests of the driver. What fails here fails the test.
 */
#ifndef SOFTCX_DRIVER_TEST_NIC_H
#define SOFTCX_DRIVER_TEST_NIC_H

struct ibv_context *test_open_device(void); /* the first */

/** The socket of that name that the NIC listens at; @type: SOCK_STREAM, SOCK_SEQPACKET. */
int test_nic_connect(const char *name, int type);

/** A number of the NIC's status. */
long test_nic_count(const char *key);

#endif
