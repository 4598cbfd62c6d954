"""Mutants of the scheduler by size classes."""

CLASSES = "tb/em_class_scheduler -k golden and 4"

MUTANTS = [
    (
        "sched/em_class_least.sv",
        "assign lesser[c+1] = present[c:0] != '0;",
        "assign lesser[c+1] = present[c];",
        [CLASSES, "formal -k em_class_first_proof"],
    ),
    (
        "sched/em_class_mutual.sv",
        "assign to_valid[o]             = valid_i[o][p];",
        "assign to_valid[o]             = valid_i[p][o];",
        [CLASSES],
    ),
    (
        "sched/em_class_first.sv",
        "&& turn_i[k] != Bit;",
        "&& turn_i[k] == Bit;",
        [CLASSES, "formal -k em_class_first_proof"],
    ),
    (
        "sched/em_class_flow.sv",
        "else if (pop) class_d = second_class_i;",
        "",
        [CLASSES],
    ),
    (
        "sched/em_class_pair.sv",
        "assign write_valid   = valid[Write] && blocked_d[0] == '0;",
        "assign write_valid   = valid[Write];",
        [CLASSES],
    ),
    (
        "sched/em_class_bank.sv",
        "assign bytes         = started_q ? remaining.bytes : head.size;",
        "assign bytes         = head.size;",
        [CLASSES],
    ),
    (
        "sched/em_class_grant.sv",
        "{OfferWidth{!response_i}};",
        "{OfferWidth{1'b1}};",
        [CLASSES],
    ),
    (
        "sched/em_class_ask.sv",
        "peer_i == Port ||",
        "peer_i == Port || response_i && peer_i == '0 ||",
        [CLASSES],
    ),
    (
        "sched/em_class_ends.sv",
        "if (of_source > start) start = of_source;",
        "",
        [CLASSES],
    ),
    (
        "sched/em_class_matcher.sv",
        "(source_least_i[s][d] || !source_holds[s]) &&",
        "",
        [CLASSES, "formal -k em_class_matcher_proof"],
    ),
    (
        "sched/em_class_scheduler.sv",
        "if (!rst_ni) turn_q <= port_t'(-2);",
        "if (!rst_ni) turn_q <= port_t'(-1);",
        [CLASSES],
    ),
]
