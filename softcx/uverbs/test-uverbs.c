/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs ABI on the real engine: context, objects, states, events. */
#include "softcx/uverbs/test-app.h"

#include "softcx/uverbs/uverbs.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- tests: context and device ---------------------------------------------------------- */

static void test_context(void **state)
{
	struct ib_uverbs_query_port req = {.port_num = 1};
	struct ib_uverbs_query_port_resp *resp;

	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_QUERY_PORT, req, resp), -EINVAL);
	assert_int_equal(app_get_context(), 0);
	assert_true(app.async_fd >= 0);
	assert_false(app_waiting(app.async_fd));
	assert_int_equal(app_get_context(), -EINVAL);
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_QUERY_PORT, req, resp), 0);
	assert_int_equal(resp->link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(resp->state, IBV_PORT_ACTIVE);
	req.port_num = 2;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_QUERY_PORT, req, resp), -EINVAL);
}

static void test_device(void **state)
{
	struct ib_uverbs_query_device req;
	struct ib_uverbs_query_device_resp *resp;
	struct ioc c;
	struct ib_uverbs_gid_entry *gid;
	uint64_t *n;

	app_open_context();
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_QUERY_DEVICE, req, resp), 0);
	assert_int_equal(resp->vendor_part_id, 4119);
	assert_int_equal(resp->atomic_cap, IBV_ATOMIC_HCA);

	app_ioc_start(&c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE);
	app_ioc_add(&c, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, 8, sizeof(*gid));
	app_ioc_add(&c, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 4, 0);
	gid = app_ioc_out(&c, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 4 * sizeof(*gid));
	n = app_ioc_out(&c, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8);
	assert_int_equal(app_ioc_run(&c), 0);
	assert_int_equal(*n, 2);
	assert_int_equal(gid[1].gid_type, IB_UVERBS_GID_TYPE_ROCE_V2);
	c.attrs[2].len = sizeof(*gid); /* room for one of two */
	assert_int_equal(app_ioc_run(&c), -EINVAL);
}

static void test_ioctl_checks(void **state)
{
	struct ioc c;

	app_open_context();
	app_ioc_start(&c, 0x0fff, 0);
	assert_int_equal(app_ioc_run(&c), -EPROTONOSUPPORT);
	app_ioc_start(&c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
	app_ioc_add(&c, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, 1);
	assert_int_equal(app_ioc_run(&c), -EINVAL); /* no place for the answer */
	app_ioc_out(&c, UVERBS_ATTR_QUERY_PORT_RESP, sizeof(struct ib_uverbs_query_port_resp_ex));
	assert_int_equal(app_ioc_run(&c), 0);
	app_ioc_add(&c, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, 1);
	assert_int_equal(app_ioc_run(&c), -EINVAL); /* twice */
	c.attrs[2].attr_id = 77;
	assert_int_equal(app_ioc_run(&c), -EPROTONOSUPPORT);
	c.attrs[2].flags = 0; /* unknown, but not important */
	assert_int_equal(app_ioc_run(&c), 0);
	c.hdr.driver_id = RDMA_DRIVER_RXE;
	assert_int_equal(app_ioc_run(&c), -EINVAL);
	c.hdr.driver_id = RDMA_DRIVER_MLX5;
	c.hdr.reserved1 = 1;
	assert_int_equal(app_ioc_run(&c), -EPROTONOSUPPORT);
}

/* The library asks like this whether write commands may go through ioctl. */
static void test_invoke_write(void **state)
{
	struct ib_uverbs_query_device_resp *resp;
	struct ib_uverbs_query_device req = {0};
	struct ioc c;

	app_open_context();
	app_ioc_start(&c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	app_ioc_add(&c, UVERBS_ATTR_WRITE_CMD, 8, IB_USER_VERBS_CMD_QUERY_DEVICE);
	assert_int_equal(app_ioc_run(&c), -ENOSPC);
	app_ioc_in(&c, UVERBS_ATTR_CORE_IN, &req, sizeof(req));
	resp = app_ioc_out(&c, UVERBS_ATTR_CORE_OUT, sizeof(*resp));
	assert_int_equal(app_ioc_run(&c), 0);
	assert_int_equal(resp->vendor_id, 0x02c9);
}

/* As of Linux 6.17: what rdma-core without write() uses. */
static void test_mr_by_ioctl(void **state)
{
	enum { REG_MR = 5 };
	enum { HANDLE, PD, DMA_HANDLE, IOVA, ADDR, LENGTH, ACCESS, FD, FD_OFFSET, LKEY, RKEY };
	struct ib_uverbs_dealloc_pd dealloc;
	uint32_t *lkey, *rkey;
	struct ioc c;
	uint8_t *p;

	app_open_context();
	dealloc.pd_handle = app_new_pd(NULL);
	p = app_arena_alloc(4096, 4096);
	app_ioc_start(&c, UVERBS_OBJECT_MR, REG_MR);
	app_ioc_add(&c, HANDLE, 0, 0);
	app_ioc_add(&c, PD, 0, dealloc.pd_handle);
	app_ioc_add(&c, IOVA, 8, 0);
	app_ioc_add(&c, LENGTH, 8, 4096);
	app_ioc_add(&c, ACCESS, 4, IBV_ACCESS_LOCAL_WRITE);
	lkey = app_ioc_out(&c, LKEY, 4);
	rkey = app_ioc_out(&c, RKEY, 4);
	assert_int_equal(app_ioc_run(&c), -EINVAL); /* of what? */
	app_ioc_add(&c, ADDR, 8, app_va(p));
	c.attrs[2].data = 1; /* another offset in its page than the address */
	assert_int_equal(app_ioc_run(&c), -EINVAL);
	c.attrs[2].data = 1 << 30;
	assert_int_equal(app_ioc_run(&c), 0);
	assert_int_not_equal(*lkey, 0);
	assert_int_equal(*rkey, *lkey);
	assert_int_equal(app_destroy_by_ioctl(UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY,
				 UVERBS_ATTR_DESTROY_MR_HANDLE, c.attrs[0].data),
		0);
	c.attrs[7].attr_id = FD; /* a dma-buf, for which its offset is missing */
	c.attrs[7].len = 0;
	assert_int_equal(app_ioc_run(&c), -EINVAL);
	app_ioc_add(&c, FD_OFFSET, 8, 0);
	assert_int_equal(app_ioc_run(&c), -EOPNOTSUPP);
	c.attrs[7].attr_id = DMA_HANDLE;
	assert_int_equal(app_ioc_run(&c), -EPROTONOSUPPORT);
	assert_int_equal(CMD(IB_USER_VERBS_CMD_DEALLOC_PD, dealloc), 0);
}

/* ---- tests: objects --------------------------------------------------------------------- */

static void test_mr(void **state)
{
	struct ib_uverbs_dealloc_pd dealloc;
	struct ib_uverbs_dereg_mr dereg;
	struct ib_uverbs_reg_mr_resp *mr;
	uint8_t *p;

	app_open_context();
	dealloc.pd_handle = app_new_pd(NULL);
	p = app_arena_alloc(8192, 4096);
	assert_int_equal(
		app_reg_mr(dealloc.pd_handle, p, 100, app_va(p), IBV_ACCESS_REMOTE_WRITE, &mr), -EINVAL);
	assert_int_equal(
		app_reg_mr(dealloc.pd_handle, p, 100, app_va(p), IBV_ACCESS_ON_DEMAND, &mr), -EOPNOTSUPP);
	assert_int_equal(app_reg_mr(dealloc.pd_handle, p, 100, 1, IBV_ACCESS_LOCAL_WRITE, &mr), -EINVAL);
	assert_int_equal(
		app_reg_mr(dealloc.pd_handle, p, 0, app_va(p), IBV_ACCESS_LOCAL_WRITE, &mr), -EINVAL);
	assert_int_equal(app_reg_mr(dealloc.pd_handle, (void *)4096, 100, 4096, 0, &mr), -EFAULT);
	assert_int_equal(app_reg_mr(999, p, 100, app_va(p), 0, &mr), -EINVAL);
	assert_int_equal(app_reg_mr(dealloc.pd_handle, p, 100, 0x100000, IBV_ACCESS_LOCAL_WRITE, &mr), 0);
	assert_int_equal(mr->lkey, mr->rkey);
	assert_true(app.again > 0);
	assert_int_equal(CMD(IB_USER_VERBS_CMD_DEALLOC_PD, dealloc), -EBUSY);
	dereg.mr_handle = dealloc.pd_handle; /* a PD is no MR */
	assert_int_equal(CMD(IB_USER_VERBS_CMD_DEREG_MR, dereg), -EINVAL);
	dereg.mr_handle = mr->mr_handle;
	assert_int_equal(CMD(IB_USER_VERBS_CMD_DEREG_MR, dereg), 0);
	assert_int_equal(CMD(IB_USER_VERBS_CMD_DEREG_MR, dereg), -ENOENT);
	assert_int_equal(CMD(IB_USER_VERBS_CMD_DEALLOC_PD, dealloc), 0);
	assert_int_equal(app_new_pd(NULL), dealloc.pd_handle); /* the lowest free handle */
}

static void test_rereg(void **state)
{
	struct ib_uverbs_rereg_mr req = {.flags = IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_PD};
	struct ib_uverbs_rereg_mr_resp *resp;
	struct ib_uverbs_dealloc_pd first;
	struct ib_uverbs_reg_mr_resp *mr;
	uint8_t *p;

	app_open_context();
	first.pd_handle = app_new_pd(NULL);
	p = app_arena_alloc(4096, 4096);
	assert_int_equal(app_reg_mr(first.pd_handle, p, 4096, app_va(p), 0, &mr), 0);
	req.mr_handle = mr->mr_handle;
	req.pd_handle = app_new_pd(NULL);
	req.access_flags = IBV_ACCESS_LOCAL_WRITE;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_REREG_MR, req, resp), 0);
	assert_int_equal(resp->lkey, mr->lkey);
	assert_int_equal(resp->rkey, mr->rkey);
	assert_int_equal(CMD(IB_USER_VERBS_CMD_DEALLOC_PD, first), 0);
	first.pd_handle = req.pd_handle;
	assert_int_equal(CMD(IB_USER_VERBS_CMD_DEALLOC_PD, first), -EBUSY);
	req.flags = IBV_REREG_MR_CHANGE_ACCESS; /* a right that UMR cannot give */
	req.access_flags |= IBV_ACCESS_MW_BIND;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_REREG_MR, req, resp), 0);
	assert_int_not_equal(resp->lkey, mr->lkey);
	mr->lkey = resp->lkey;
	req.flags = IBV_REREG_MR_CHANGE_TRANSLATION;
	req.start = req.hca_va = app_va(p);
	req.length = 100;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_REREG_MR, req, resp), 0);
	assert_int_not_equal(resp->lkey, mr->lkey);
}

static void test_qp_states(void **state)
{
	struct cq cq;
	struct qp qp;
	uint32_t pd;

	app_open_context();
	pd = app_new_pd(NULL);
	assert_int_equal(app_new_cq(&cq, 63, -1), 0);
	assert_int_equal(app_new_qp(&qp, pd, &cq, IBV_QPT_RAW_PACKET), -EOPNOTSUPP);
	assert_int_equal(app_new_qp(&qp, pd, &cq, IBV_QPT_RC), 0);
	assert_int_equal(app_modify(&qp, TO_RTR, IBV_QPS_RTR), -EINVAL);
	assert_int_equal(app_modify(&qp, TO_INIT & ~IBV_QP_PORT, IBV_QPS_INIT), -EINVAL);
	assert_int_equal(app_modify(&qp, TO_INIT | IBV_QP_QKEY, IBV_QPS_INIT), -EINVAL);
	assert_int_equal(app_modify(&qp, TO_INIT, IBV_QPS_INIT), 0);
	assert_int_equal(app_modify(&qp, TO_RTR | IBV_QP_ALT_PATH, IBV_QPS_RTR), -EINVAL);
	assert_int_equal(app_modify(&qp, TO_RTR, IBV_QPS_RTR), 0);
	assert_int_equal(app_modify(&qp, TO_RTS, IBV_QPS_RTS), 0);
	assert_int_equal(app_modify(&qp, IBV_QP_MIN_RNR_TIMER, IBV_QPS_RTS), 0);
	assert_int_equal(app_modify(&qp, 0, IBV_QPS_INIT), -EINVAL);
	assert_int_equal(app_modify(&qp, 0, 9), -EINVAL);

	struct ib_uverbs_query_qp req = {.qp_handle = qp.handle};
	struct ib_uverbs_query_qp_resp *q;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_QUERY_QP, req, q), 0);
	assert_int_equal(q->qp_state, IBV_QPS_RTS);
	assert_int_equal(q->path_mtu, IBV_MTU_1024);
	assert_int_equal(q->dest_qp_num, qp.qpn);
	assert_int_equal(q->dest.sgid_index, 1);
	assert_int_equal(q->min_rnr_timer, 12);
	assert_int_equal(app_modify(&qp, 0, IBV_QPS_ERR), 0);
	assert_int_equal(app_modify(&qp, 0, IBV_QPS_RESET), 0);
}

/* Without a GRH a RoCE path leads nowhere; an SRQ and an AH work alike. */
static void test_grh(void **state)
{
	struct ib_uverbs_create_ah ah = {.attr = {.port_num = 1}};
	struct ib_uverbs_create_ah_resp *resp;
	struct ib_uverbs_modify_qp bad = {.attr_mask = IBV_QP_STATE | TO_RTR, .qp_state = IBV_QPS_RTR};
	struct cq cq;
	struct qp qp;

	app_open_context();
	ah.pd_handle = app_new_pd(NULL);
	assert_int_equal(app_new_cq(&cq, 63, -1), 0);
	assert_int_equal(app_new_qp(&qp, ah.pd_handle, &cq, IBV_QPT_RC), 0);
	assert_int_equal(app_modify(&qp, TO_INIT, IBV_QPS_INIT), 0);
	bad.qp_handle = qp.handle;
	bad.path_mtu = IBV_MTU_1024;
	bad.dest.port_num = 1;
	assert_int_equal(CMD(IB_USER_VERBS_CMD_MODIFY_QP, bad), -EINVAL);
	bad.dest.is_global = 1;
	bad.dest.sgid_index = 2;
	assert_int_equal(CMD(IB_USER_VERBS_CMD_MODIFY_QP, bad), -EINVAL);
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_CREATE_AH, ah, resp), -EINVAL);
	ah.attr.is_global = 1;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_CREATE_AH, ah, resp), 0);
}

static int new_comp_channel(void)
{
	struct ib_uverbs_create_comp_channel req;
	struct ib_uverbs_create_comp_channel_resp *ch;

	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, req, ch), 0);
	return (int)ch->fd;
}

/* What comes out of the channel @fd, which is closed */
static void check_completion_events(int fd)
{
	struct ib_uverbs_comp_event_desc event;
	struct ib_uverbs_destroy_cq_resp *done;
	struct ib_uverbs_destroy_cq destroy = {0};
	struct ib_uverbs_destroy_qp destroy_q = {0};
	struct ib_uverbs_destroy_qp_resp *done_q;
	struct cq cq;
	struct qp qp;

	assert_int_equal(app_new_cq(&cq, 63, app.async_fd), -EBADF); /* not a completion channel */
	assert_int_equal(app_new_cq(&cq, 63, fd), 0);
	assert_int_equal(app_new_qp(&qp, app_new_pd(NULL), &cq, IBV_QPT_RC), 0);
	assert_int_equal(app_modify(&qp, TO_INIT, IBV_QPS_INIT), 0);
	assert_int_equal(app_modify(&qp, TO_RTR, IBV_QPS_RTR), 0);
	assert_int_equal(app_modify(&qp, TO_RTS, IBV_QPS_RTS), 0);
	app_arm_cq(&cq, 0);
	app_run();
	assert_false(app_waiting(fd));
	for (unsigned i = 0; i < 2; i++) {
		app_post(qp.buf + RQ_BYTES, qp.db, qp.qpn, &qp.pi, 0, 1, NULL);
		app_run();
		assert_true(app_waiting(fd));
		if (i == 0)
			assert_int_equal(read(fd, &event, sizeof(event)), sizeof(event));
		cq.db[0] = htobe32(i + 1);
		app_arm_cq(&cq, i + 1);
	}
	assert_int_equal(event.cq_handle, app_va(&cq));
	destroy.cq_handle = cq.handle;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_DESTROY_CQ, destroy, done), -EBUSY);
	destroy_q.qp_handle = qp.handle;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_DESTROY_QP, destroy_q, done_q), 0);
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_DESTROY_CQ, destroy, done), 0);
	assert_int_equal(done->comp_events_reported, 1); /* read; the other one was taken back */
	assert_false(app_waiting(fd));
	close(fd);
}

static void test_completion_events(void **state)
{
	app_open_context();
	check_completion_events(new_comp_channel());
}

static unsigned comp_channels(void)
{
	return uverbs_channels_count(app.file, UVERBS_CH_COMP);
}

/* Above the limit they are named pipes, which are gone with their last reader. */
static void test_named_channels(void **state)
{
	static char dir[] = "/tmp/test-uverbs.XXXXXX";
	int first, second;

	assert_non_null(mkdtemp(dir));
	app_open_context();
	uverbs_channels_name(dir, 2); /* one of them for asynchronous events */
	first = new_comp_channel();
	assert_int_equal(rmdir(dir) | mkdir(dir, 0700), 0);
	second = new_comp_channel();
	assert_int_equal(rmdir(dir), -1);
	assert_int_equal(comp_channels(), 2);
	check_completion_events(second);
	assert_int_equal(comp_channels(), 1);
	close(first);
	assert_int_equal(comp_channels(), 0);
	close(new_comp_channel());
	assert_int_equal(rmdir(dir), 0);
	uverbs_channels_name(NULL, 0);
}

/* An event comes through a named pipe although the NIC has no descriptor left. */
static void test_event_without_descriptors(void **state)
{
	enum { MOST = 256 };
	static char dir[] = "/tmp/test-uverbs.XXXXXX";
	static const uint64_t event = 42;
	struct rlimit before, few;
	struct uverbs_channel *ch;
	int fd, held[MOST];
	unsigned n = 0;
	uint64_t got;

	assert_non_null(mkdtemp(dir));
	app_open_context();
	uverbs_channels_name(dir, 0);
	assert_int_equal(uverbs_channel_new(app.file, UVERBS_CH_COMP, &fd, &ch), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){MOST, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while (n < MOST && (held[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		n++;
	assert_true(uverbs_channel_post(ch, &event, sizeof(event)));
	assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), -1);
	while (n)
		close(held[--n]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(read(fd, &got, sizeof(got)), sizeof(got));
	assert_int_equal(got, event);
	close(fd);
	uverbs_channels_name(dir, UINT_MAX);
	close(new_comp_channel());
	assert_int_equal(rmdir(dir), 0);
	uverbs_channels_name(NULL, 0);
}

/* A WRITE with a key that is none: the responder's QP reports an access error. */
static void test_async_events(void **state)
{
	struct ib_uverbs_destroy_qp destroy = {0};
	struct ib_uverbs_destroy_qp_resp *done;
	struct ib_uverbs_async_event_desc event;
	struct ib_uverbs_reg_mr_resp *mr;
	uint8_t seg[32] = {0}, *data;
	struct cq cq;
	struct qp qp, peer;
	uint32_t pd;

	app_open_context();
	assert_int_equal(app_new_cq(&cq, 63, -1), 0);
	pd = app_new_pd(NULL);
	assert_int_equal(app_new_qp(&qp, pd, &cq, IBV_QPT_RC), 0);
	assert_int_equal(app_new_qp(&peer, pd, &cq, IBV_QPT_RC), 0);
	qp.dest = peer.qpn;
	peer.dest = qp.qpn;
	for (const struct qp *q = &qp; q; q = q == &qp ? &peer : NULL) {
		assert_int_equal(app_modify(q, TO_INIT, IBV_QPS_INIT), 0);
		assert_int_equal(app_modify(q, TO_RTR, IBV_QPS_RTR), 0);
		assert_int_equal(app_modify(q, TO_RTS, IBV_QPS_RTS), 0);
	}
	data = app_arena_alloc(4096, 4096);
	assert_int_equal(app_reg_mr(pd, data, 4096, app_va(data), IBV_ACCESS_LOCAL_WRITE, &mr), 0);
	prm_set(seg, 64, 32, 0xdead00);
	prm_set(seg, 128, 32, 8);
	prm_set(seg, 160, 32, mr->lkey);
	prm_set(seg, 192, 64, app_va(data));
	app_post(qp.buf + RQ_BYTES, qp.db, qp.qpn, &qp.pi, 8, 3, seg);
	app_run();
	assert_true(app_waiting(app.async_fd));
	do
		assert_int_equal(read(app.async_fd, &event, sizeof(event)), sizeof(event));
	while (event.event_type == IBV_EVENT_COMM_EST);
	assert_int_equal(event.element, app_va(&peer));
	assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	destroy.qp_handle = peer.handle;
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_DESTROY_QP, destroy, done), 0);
	assert_int_equal(done->events_reported, 1);
	assert_false(app_waiting(app.async_fd));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, app_setup, app_teardown)
	const struct CMUnitTest tests[] = {
		T(test_context),
		T(test_device),
		T(test_ioctl_checks),
		T(test_mr_by_ioctl),
		T(test_invoke_write),
		T(test_mr),
		T(test_rereg),
		T(test_qp_states),
		T(test_grh),
		T(test_completion_events),
		T(test_named_channels),
		T(test_event_without_descriptors),
		T(test_async_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
