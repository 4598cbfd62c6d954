"""Mutants of links with their registers, and of the bus to those."""

from flow.mutants.checks import bench, proof

# The least network, checked as the larger one is: its model is the quickest to compile.
SYSTEM = "tb/em_system -k two_nodes"

MUTANTS = [
    (
        "registers/em_registers.rdl",
        "default hw = na;\n  buffer_reads = true;",
        "default hw = na;",
        [proof("em_link_registers")],
    ),
    (
        "common/em_axil.sv",
        "assign reads  = free && s_axil_i.ar_valid && !writes;",
        "assign reads  = free && s_axil_i.ar_valid;",
        [bench("em_axil")],
    ),
    (
        "common/em_axil.sv",
        "(response_i.error || !response_i.done)",
        "1'b0",
        [bench("em_axil")],
    ),
    (
        "top/em_axil_flat.sv",
        "assign s_axil_bvalid_o  = response_i.b_valid;",
        "assign s_axil_bvalid_o  = response_i.r_valid;",
        [bench("em_host_top")],
    ),
    (
        "top/em_axi_flat.sv",
        "assign m_axi_wlast_o                     = request_i.write.w.last;",
        "assign m_axi_wlast_o                     = request_i.write.w_valid;",
        [SYSTEM],
    ),
    (
        "common/em_bus_split.sv",
        "if (index == IndexBits'(w)) response_o = response_i[w];",
        "response_o = response_i[w];",
        [bench("em_bus_split")],
    ),
    (
        "common/em_event_cross.sv",
        "gray_q <= here_d ^ (here_d >> 1);",
        "gray_q <= here_d;",
        [bench("em_event_cross")],
    ),
    (
        "phy/em_link.sv",
        "else if (events.corrupt && hold_rx) held_q <= 1'b1;",
        "else if (events.corrupt) held_q <= 1'b1;",
        [bench("em_link")],
    ),
    (
        "phy/em_link.sv",
        "&& settled_i && down_q == DownBits'(DownCycles);",
        "&& settled_i;",
        [bench("em_link")],
    ),
    (
        "phy/em_link_counters.sv",
        "incrvalue: counts.corrupt_control};",
        "incrvalue: counts.corrupt_message};",
        [bench("em_link")],
    ),
    (
        "host/em_host_counters.sv",
        "assign here = completed_i && !completion_i.remote;",
        "assign here = completed_i;",
        [bench("em_host_counters")],
    ),
    (
        "host/em_host_counters.sv",
        "assign said.posted_lost.count    = '{incr: 1'b1, incrvalue: dropped_i[2]};",
        "assign said.posted_lost.count    = '{incr: 1'b1, incrvalue: dropped_i[3]};",
        [bench("em_host_counters")],
    ),
    (
        "switch/em_switch_counters.sv",
        "'{incr: events_i.chunk_aborted, incrvalue: 4'd1};",
        "'{incr: events_i.chunk_astray, incrvalue: 4'd1};",
        [bench("em_switch_counters")],
    ),
    (
        "switch/em_switch_config.sv",
        "left_t'(wanted.horizon.ahead_cycles.value);",
        "left_t'(wanted.horizon.window_cycles.value);",
        [bench("em_switch_config")],
    ),
    (
        "top/em_host_top.sv",
        ".completed_i     (m_axis_completion_tvalid_o && m_axis_completion_tready_i),",
        ".completed_i     (1'b0),",
        [SYSTEM],
    ),
    (
        "top/em_host_top.sv",
        ".dropped_i       (dropped_counts)",
        ".dropped_i       ({5{4'd1}})",
        [SYSTEM],
    ),
    (
        "phy/em_xgmii_enc.sv",
        "if (!in_frame_q && continues) block = Idle;",
        "",
        [bench("em_xgmii_pair"), bench("em_host_top")],
    ),
    (
        "top/em_host_top.sv",
        ".fail_i         (fail),",
        ".fail_i         (1'b0),",
        [bench("em_host_top")],
    ),
    (
        "top/em_switch_top.sv",
        ".events_i   (events[p]),",
        ".events_i   ('1),",
        [SYSTEM],
    ),
    (
        "top/em_switch_top.sv",
        ".memory_ready_i    (memory_ready),",
        ".memory_ready_i    ('1),",
        [SYSTEM],
    ),
]
