"""Mutants of links with their registers, and of the bus to those."""

from flow.mutants.checks import bench, proof

MUTANTS = [
    (
        "registers/em_registers.rdl",
        "default hw = na;\n  buffer_reads = true;",
        "default hw = na;",
        [proof("em_link_registers")],
    ),
    (
        "common/em_axil.sv",
        "assign reads  = free && s_axil_arvalid_i && !writes;",
        "assign reads  = free && s_axil_arvalid_i;",
        [bench("em_axil")],
    ),
    (
        "common/em_axil.sv",
        "(response_i.error || !response_i.done) ? SlaveError : Okay;",
        "Okay;",
        [bench("em_axil")],
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
]
