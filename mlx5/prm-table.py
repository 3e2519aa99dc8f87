#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lists the fields of prm.h as C, for test-prm.c: prm-table.py prm.h > prm-table.inc"""
import re
import sys

STRUCTS = ['create_qp_in', 'create_qp_out', 'qpc', 'ads', 'query_qp_out', 'create_cq_in', 'create_cq_out', 'cqc',
           'query_cq_out', 'create_mkey_in', 'create_mkey_out', 'mkc', 'query_hca_cap_in', 'query_hca_cap_out',
           'cmd_hca_cap', 'roce_cap', 'atomic_caps']
# Only DPDK names these; Linux leaves the bits reserved.
NOT_IN_LINUX = {'create_qp_in.wq_umem_offset', 'create_qp_in.wq_umem_id', 'create_cq_in.cq_umem_offset',
                'create_cq_in.cq_umem_id', 'qpc.dbr_umem_id', 'cqc.dbr_umem_id', 'cmd_hca_cap.wqe_index_ignore_cap'}

for line in open(sys.argv[1], encoding='ascii'):
    m = re.match(r'#define PRM_(\w+) (0x[0-9a-f]+)(, \d+)?', line)
    if not m or m.group(1).startswith(('in_', 'out_', 'modify_qp_in_')):
        continue
    struct = next(s for s in sorted(STRUCTS, key=len, reverse=True) if m.group(1).startswith(s + '_'))
    field = m.group(1)[len(struct) + 1:]
    if field.endswith('_byte') and not m.group(3):
        print(f'BYTE({struct}, {field[:-5]})')
    elif f'{struct}.{field}' not in NOT_IN_LINUX:
        print(f'FIELD({struct}, {field})')
