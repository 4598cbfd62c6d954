"""Mutants of the exact grant scheduler."""

from flow.mutants.checks import SCHEDULER, proof

MUTANTS = [
    (
        "sched/em_sched_pkg.sv",
        "generated |= passed & (generated << span);",
        "generated |= generated << span;",
        [proof("em_sched_sum")],
    ),
    (
        "sched/em_sched_pkg.sv",
        "return plus(a ^ b ^ c, (a & b | a & c | b & c) << 1);",
        "return plus(a ^ b ^ c, (a & b | a & c) << 1);",
        [proof("em_sched_sum")],
    ),
    (
        "sched/em_sched_pkg.sv",
        "if (bits[5]) return {2'd2, bits[4:2]};",
        "if (bits[5]) return {2'd2, bits[3:1]};",
        [proof("em_sched_log")],
    ),
    (
        "sched/em_sched_pkg.sv",
        "if (found[g] && found >> (g + 1) == '0) begin",
        "if (found[g]) begin",
        [proof("em_sched_log")],
    ),
    (
        "sched/em_sched_pkg.sv",
        "return ~lesser & {lesser[SizeClasses-2:0], 1'b1};",
        "return ~lesser;",
        [proof("em_size_class_first")],
    ),
    (
        "sched/em_sched_matcher.sv",
        "assign asks[d] = request_q[d] && asked_q[d] == PortWidth'(s);",
        "assign asks[d] = request_q[d];",
        [SCHEDULER, proof("em_sched_matcher")],
    ),
    (
        "sched/em_sched_matcher.sv",
        "request_response_q[d] <= response_i[asked[d]][d];",
        "request_response_q[d] <= response_i[d][d];",
        [SCHEDULER, proof("em_sched_matcher")],
    ),
    (
        "sched/em_sched_hold.sv",
        "assign mutual[p] = enable_i &&",
        "assign mutual[p] = !enable_i &&",
        [SCHEDULER],
    ),
    (
        "sched/em_sched_flow.sv",
        "assign head_late      = left != '0 &&",
        "assign head_late      = 1'b0 &&",
        [SCHEDULER],
    ),
    (
        "sched/em_sched_pair.sv",
        "reverse_time_i < write_time",
        "reverse_time_i > write_time",
        [SCHEDULER],
    ),
    (
        "sched/em_sched_port.sv",
        "assign held_d = (phase_i == PhaseGrant) ? charge_q : '0;",
        "assign held_d = '0;",
        [SCHEDULER],
    ),
    (
        "sched/em_sched_pkg.sv",
        "return (bytes + bytes_t'(7)) >> 3;",
        "return bytes >> 3;",
        [SCHEDULER],
    ),
    (
        "sched/em_scheduler.sv",
        "assign granted[p]  = last[p] ? head[p][d].remaining : Chunk;",
        "assign granted[p]  = Chunk;",
        [SCHEDULER],
    ),
]
