"""Mutants of the switch."""

MEMORY = "tb/em_switch_memory -k 4-fcfs-0"
FAILURES = "tb/em_switch_memory -k 4-fcfs-1"
CIRCUITS = "tb/em_switch_circuits"
ETHERNET = "tb/em_l2_switch"

MUTANTS = [
    (
        "switch/em_switch_pkg.sv",
        "localparam logic [3:0] OpPeer = 4'd0;",
        "localparam logic [3:0] OpPeer = 4'd4;",
        [MEMORY],
    ),
    (
        "switch/em_switch_identify.sv",
        "if (!memory_i.first) kind = kind_q;",
        "",
        [MEMORY],
    ),
    (
        "switch/em_switch_crossing.sv",
        ".OutputRegister(1'b0)",
        ".OutputRegister(1'b1)",
        [MEMORY],
    ),
    (
        "switch/em_switch_ingress.sv",
        "if (!allowed_i) chunk_block = Abort;",
        "",
        [MEMORY],
    ),
    (
        "switch/em_switch_ingress.sv",
        "sent.node = node_t'(Port);",
        "",
        [MEMORY],
    ),
    (
        "switch/em_switch_circuits.sv",
        "else if (use_i && fits) part_q <= 1'b1;",
        "",
        [MEMORY],
    ),
    (
        "switch/em_switch_circuits.sv",
        "if (!port_up_i[destinations_q[i]]) nowhere_q[i] <= 1'b1;",
        "",
        [CIRCUITS],
    ),
    (
        "switch/em_switch_requests.sv",
        "if (release_i && looked_q == PortWidth'(p)) read_q[p]",
        "if (release_i) read_q[p]",
        [MEMORY],
    ),
    (
        "switch/em_switch_emit.sv",
        "mark: opened_before_q,",
        "mark: opened_i,",
        [MEMORY],
    ),
    (
        "switch/em_switch_emit.sv",
        "grant_delay_i == left_t'(i + 2)",
        "grant_delay_i == left_t'(i + 1)",
        [MEMORY],
    ),
    (
        "switch/em_switch_lanes.sv",
        "(!writing_q[l] && has_room[l]) ? lowest : '0;",
        "has_room[l] ? lowest : '0;",
        [MEMORY, "formal -k em_switch_lanes_proof"],
    ),
    (
        "switch/em_switch_lanes.sv",
        "assign group = group_head & ~done_q;",
        "assign group = group_head;",
        [MEMORY, "formal -k em_switch_lanes_proof"],
    ),
    (
        "switch/em_switch_egress.sv",
        "unit_q == UnitNone && !status_valid && emit_valid;",
        "unit_q == UnitNone && emit_valid;",
        [MEMORY],
    ),
    (
        "switch/em_switch_pairs.sv",
        "parts || unheard_q[n][p] && !heard",
        "parts && !heard",
        [FAILURES],
    ),
    (
        "switch/em_switch_uplink.sv",
        ".clear_i           (!port_up_i[Port]),",
        ".clear_i           (1'b0),",
        [FAILURES],
    ),
    (
        "switch/em_switch_downlink.sv",
        "request.node  = node_t'(PortWidth'(grant_i.destination));",
        "",
        [MEMORY],
    ),
    (
        "switch/em_switch_memory.sv",
        "released[p] |= decision[s].valid && decision[s].response && decision[s].first &&",
        "released[p] |= decision[s].valid && decision[s].response &&",
        [MEMORY],
    ),
    (
        "switch/em_l2_pkg.sv",
        "40'h00_00c2_8001",
        "40'h00_00c2_8000",
        [ETHERNET],
    ),
    (
        "switch/em_l2_parse.sv",
        "late_q  <= block_i.payload[7:0] != BlockStart;",
        "late_q  <= 1'b0;",
        [ETHERNET],
    ),
    (
        "switch/em_l2_table.sv",
        "found.mac == wanted_q",
        "1'b1",
        [ETHERNET],
    ),
    (
        "switch/em_l2_table.sv",
        ">= 2'd2;",
        ">= 2'd3;",
        [ETHERNET],
    ),
    (
        "switch/em_l2_ingress.sv",
        "if (first) keeping_q <= !full;",
        "if (first) keeping_q <= 1'b1;",
        [ETHERNET],
    ),
    (
        "switch/em_l2_ingress.sv",
        "assign again     = ends && (remaining & ~current_q) != '0;",
        "assign again     = 1'b0;",
        [ETHERNET],
    ),
    (
        "switch/em_l2_egress.sv",
        "gap_q <= idles ? 2'd2 : 2'd1;",
        "gap_q <= 2'd1;",
        [ETHERNET],
    ),
    (
        "switch/em_l2_crossing.sv",
        "encoded_i.header == SyncData || starts ||",
        "encoded_i.header == SyncData || encoded_i.payload[7:0] == BlockStart ||",
        [ETHERNET],
    ),
    (
        "switch/em_l2_switch.sv",
        ".request_i(offered[p]),",
        ".request_i(wants[p]),",
        [ETHERNET],
    ),
    (
        "switch/em_switch.sv",
        ".ElasticCycles   (ElasticCycles)",
        ".ElasticCycles   (0)",
        ["tb/em_switch/ -k 1001"],
    ),
]
