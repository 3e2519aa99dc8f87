/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of checks. */
#include "reddnd/probe/bed.h"
#include "util/array.h"

/* Whoever calls has opened it, which checks the capabilities */
static int check_device(struct probe *probe, struct probe_result *result)
{
	const struct rnic_caps *caps = rnic_device_caps(probe->master->block.dev);

	return probe_measured(result, "send WQEs of %u bytes, receive WQEs of %u, %u READs in flight",
		caps->max_sq_wqe, caps->max_rq_wqe, 1u << caps->log_rd_atomic);
}

static const struct probe_check checks[] = {
	{PROBE_DEVICE, "device",
		"the device takes firmware commands of programs (DEVX), and has what all chains need: "
		"cross-channel work requests, completion queues that ignore overrun, compare-and-swap, WQEs "
		"of 256 bytes",
		"the NIC runs no chains: the CPU executes all offloads",
		"Linux mlx5_ib devx.c: log_max_uctx is 0 with UCTX_EN=0; mlx5_ifc.h cmd_hca_cap", 0,
		.run = check_device},
	{PROBE_LONG_WQES, "long-wqes", "send WQEs of 512 bytes take 30 data segments, or inline data",
		"no chain can be recycled, and there are no loops without a bound",
		"ibv_devinfo of a ConnectX-5: max_sge 30; Linux qp.h MLX5_SEND_WQE_MAX_WQEBBS", 0,
		.run = check_long_wqes},
	{PROBE_TIMESTAMPS, "timestamps", "timestamps of completions are ticks of a free-running clock",
		"nothing of the daemon; times that are measured are nanoseconds then",
		"Linux mlx5_ifc.h MLX5_TIMESTAMP_FORMAT_CAP_*; REAL_TIME_CLOCK_ENABLE of ConnectX-6 Dx and "
		"later",
		0, .run = check_timestamps},

	{PROBE_CHAIN, "chain",
		"a WAIT holds until its CQE is there, a SEND_EN runs a managed queue exactly up to its "
		"index, and a WQE that was patched before is executed as patched",
		"no chain runs", "Mellanox gtest cross-channel TI.4; OFED libmlx5; RedN (NSDI 2022)",
		PROBE_AT_START, .on_bed = check_chain},
	{PROBE_WAITS, "waits", "many queues can wait for one completion, and all go on when it is there",
		"few clients can be connected", "no source; each idle session has queues that wait", 0,
		.run = check_waits},
	{PROBE_FLUSHED_RECV, "flushed-recv",
		"a RECV that is flushed ends the WAITs of other queues for it, and nothing behind a WAIT in "
		"its own queue pair runs",
		"a request that did not arrive could be answered",
		"IB 10.3.1 has the flush; what it does to WAITs is assumed", 0, .run = check_flushed_recv},
	{PROBE_SMALLER_ENABLE, "smaller-enable", "a SEND_EN with an index that is not ahead changes nothing",
		"enables that meet each other would run a queue too far",
		"no source: DPDK's rearm queue only raises it", 0, .on_bed = check_smaller_enable},
	{PROBE_DOORBELL, "doorbell", "a doorbell does not run a managed queue",
		"nothing of the daemon, which rings none; a wrong program would run unordered",
		"OFED libmlx5 CREATE_FLAG_NO_DOORBELL; DPDK mlx5_crypto_gcm.c rings a cd_slave_send queue "
		"and relies on it",
		0, .on_bed = check_doorbell},
	{PROBE_RECV_ENABLE, "recv-enable", "a RECV_EN lets messages use RECVs up to its index, and no others",
		"no chain can be recycled: offloads are unrolled",
		"PCX; Mellanox gtest cross-channel, disabled \"because of issue in FW\"", PROBE_AT_START,
		.run = check_recv_enable},
	{PROBE_SMALLER_RECV_ENABLE, "smaller-recv-enable",
		"a RECV_EN with an index that is not ahead changes nothing",
		"recycled chains would run ahead of what is armed", "no source", 0,
		.run = check_smaller_recv_enable},
	{PROBE_WQE_WRAP, "wqe-wrap", "WQE indices, and those of SEND_ENs, go on after 2^16 WQEBBs",
		"sessions stop after some ten thousand requests",
		"rdma-core qp.c (cur_post & 0xffff); DPDK MLX5_WQ_INDEX_WIDTH", 0, .on_bed = check_wqe_wrap},
	{PROBE_CQE_WRAP, "cqe-wrap", "the numbers that WAITs name go on after 2^24 CQEs",
		"sessions stop after some million requests", "DPDK mlx5_txpp.c covers 2^24 numbers",
		PROBE_LONG, .on_bed = check_cqe_wrap},

	{PROBE_FETCH, "fetch", "a managed queue is fetched no further than it is enabled",
		"a WQE that a chain patches runs as it was before: wrong answers without an error",
		"RedN patches the WQE behind the enabled one; no vendor states it",
		PROBE_AT_START | PROBE_LOADED | PROBE_RACE, .run = check_fetch},
	{PROBE_READ_PATCH, "read-patch",
		"every field that programs patch can be patched by the scatter list of a READ",
		"chains with such a patch do something else",
		"RedN (NSDI 2022) patches control segments and addresses", PROBE_LOADED,
		.run = check_read_patch},
	{PROBE_RECV_PATCH, "recv-patch",
		"every field that programs patch can be patched by the scatter list of a RECV",
		"requests do not reach the chain", "RedN (NSDI 2022): arguments", PROBE_LOADED,
		.run = check_recv_patch},
	{PROBE_AWAITED_READ, "awaited-read",
		"when a WAIT for the CQE of a READ ends, its data are in memory for the fetch that a SEND_EN "
		"behind it starts",
		"no chain that patches by READ is right", "IB 10.8; PCIe: reads do not pass posted writes",
		PROBE_LOADED | PROBE_RACE, .run = check_awaited_read},
	{PROBE_FENCED_ENABLE, "fenced-enable",
		"a SEND_EN with a fence starts only after the READs and atomics before it have completed",
		"fenced_enables is of no use; chains take a WAIT instead",
		"DPDK mlx5_crypto_gcm.c fences a SEND_EN behind UMRs; for READs no source",
		PROBE_AT_START | PROBE_IF_ASKED | PROBE_LOADED | PROBE_RACE, .run = check_fenced_enable},
	{PROBE_FENCED_WRITE, "fenced-write", "a fenced WRITE sends the data of a READ in front of it",
		"replies have old bytes", "IB 10.8.3.3 (fence); rdma-core qp.c IBV_SEND_FENCE",
		PROBE_LOADED | PROBE_RACE, .on_bed = check_fenced_write},
	{PROBE_WQE_CHECKS, "wqe-checks",
		"a WQE with the index or the queue pair number of another place is an error",
		"nothing: a device that ignores both allows programs with one copy less per condition",
		"DPDK mlx5_prm.h wqe_index_ignore_cap; RedN clears registers to get rid of the check",
		PROBE_AT_START, .run = check_wqe_checks},
	{PROBE_RECV_FETCH, "recv-fetch", "a managed receive queue is fetched no further than it is enabled",
		"a record comes to the extent of an earlier put: no chain that publishes is recycled",
		"no source", PROBE_AT_START | PROBE_LOADED | PROBE_RACE, .run = check_recv_fetch},

	{PROBE_FLUSH, "flush",
		"a managed queue that fails gives a CQE for each WQE that was enabled, and no more",
		"each session needs a completion queue of its own", "assumed", PROBE_AT_START,
		.on_bed = check_flush},
	{PROBE_FAILING_READ, "failing-read",
		"a READ that fails writes nothing, flushes what is behind it, and ends the WAITs for it",
		"chains could answer with what is not there",
		"IB 10.3.1; that an error ends a WAIT is assumed", 0, .run = check_failing_read},
	{PROBE_MESSAGE_LIMIT, "message-limit",
		"a message that is longer than its queue pair allows (QPC.log_msg_max) is not sent",
		"the NIC runs no chains: the CPU executes all offloads",
		"Linux mlx5_ifc.h has the field; its effect is assumed", PROBE_AT_START,
		.run = check_message_limit},

	{PROBE_ATOMICS, "atomics",
		"atomics of 8 bytes work on words in host order, return the old value in host order, and "
		"exclude each other",
		"no conditions, no counters; old values that are big-endian cost a copy each",
		"Linux hw/mlx5/main.c atomic_req_8B_endianness_mode", PROBE_AT_START,
		.on_bed = check_atomics},
	{PROBE_MASKED_ATOMICS, "masked-atomics",
		"masked atomics of 8 bytes heed their masks and field boundaries, and return the old value",
		"no recycling, no loops without a bound, no comparisons by < and >",
		"OFED libmlx5 qp.c; UCX rc_mlx5; Linux atomic_caps", PROBE_AT_START,
		.run = check_masked_atomics},
	{PROBE_CALC, "calc", "a WRITE with CALC sends the sum, maximum, AND, OR or XOR of two 64-bit numbers",
		"nothing: programs calculate by atomics and conditions",
		"MLNX_OFED 4.1 libmlx5 qp.c; RedN (NSDI 2022), table 3, on a ConnectX-5; not in rdma-core",
		PROBE_AT_START, .run = check_calc},
	{PROBE_EVENTS, "events",
		"a completion queue raises one event for each time that it is armed, in either mode",
		"the daemon misses completions, or does not sleep", "rdma-core cq.c mlx5_arm_cq; DPDK vdpa",
		0, .run = check_events},

	{PROBE_FORCED_LOOPBACK, "forced-loopback",
		"queues reach each other without an address (address path fl)",
		"they take the port's own GID, for which its network interface must be up, or its LID",
		"DPDK mlx5_devx_cmds.c; Linux mlx5_ifc.h fl_rc_qp_when_roce_enabled", 0,
		.run = check_forced_loopback},
	{PROBE_OWN_ADDRESS, "own-address", "queues reach each other by the port's own GID, or LID",
		"devices without forced loopback cannot run chains",
		"rdma-core dr_send.c dr_prepare_qp_to_rts; SNAP", 0, .run = check_own_address},
	{PROBE_ACCEPTED, "accepted",
		"a queue pair made by firmware commands can be that of a connection, with the path of its "
		"request",
		"no client can be served", "Linux hw/mlx5/qp.c mlx5_set_path; UCX ib_mlx5_dv.c", 0,
		.run = check_accepted},
	{PROBE_MEMORY_FILE, "memory-file", "the NIC can read and change a file in memory (tmpfs)",
		"no region can be served", "Linux mm/gup.c writable_file_mapping_allowed", 0,
		.run = check_memory_file},
	{PROBE_HUGE_FILE, "huge-file", "the NIC can read and change a file of huge pages (hugetlbfs)",
		"tables have to be in small pages", "Linux mm/gup.c writable_file_mapping_allowed", 0,
		.run = check_huge_file},
	{PROBE_DISK_FILE, "disk-file", "the NIC can read a file on a disk that was opened for reading",
		"tables have to be in memory",
		"Linux 6.2 core/umem.c without FOLL_FORCE; before, through a mapping that may be written", 0,
		.run = check_disk_file},
};

const struct probe_check *probe_checks(unsigned *n)
{
	*n = COUNT(checks);
	return checks;
}
