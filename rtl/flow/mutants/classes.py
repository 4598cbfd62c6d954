"""Mutants of the scheduler by size classes."""

CLASSES = "tb/em_size_class_scheduler -k golden and 4"
# What those short traces do not meet.
RANDOM = "tb/em_size_class_scheduler -k random and 4"

MUTANTS = [
    (
        "sched/em_size_class_least.sv",
        "assign least_o[i] = valid_i[i] && (lesser_i[i] & present) == '0;",
        "assign least_o[i] = valid_i[i] && (lesser_i[i] & present) <= 1;",
        [CLASSES, "formal -k em_size_class_first_proof"],
    ),
    (
        "sched/em_size_class_mutual_least.sv",
        "assign to_valid[o]             = valid_i[o][p];",
        "assign to_valid[o]             = valid_i[p][o];",
        [CLASSES],
    ),
    (
        "sched/em_size_class_first.sv",
        "&& turn_i[k] != Bit;",
        "&& turn_i[k] == Bit;",
        [CLASSES, "formal -k em_size_class_first_proof"],
    ),
    (
        "sched/em_size_class_candidates.sv",
        "({last_i[Write][s], last_i[Response][d]}),",
        "({last_i[Write][d], last_i[Response][d]}),",
        [CLASSES],
    ),
    (
        "sched/em_size_class_flow_head.sv",
        "if (last_i) taken_class_o = only ? insert_class_i : second_class_i;",
        "",
        [CLASSES],
    ),
    (
        "sched/em_size_class_candidate.sv",
        ": kept_valid[Write] && kept_free;",
        ": kept_valid[Write];",
        [CLASSES],
    ),
    (
        "sched/em_size_class_message_bank.sv",
        "assign bytes         = started_q ? remaining.bytes : head.size;",
        "assign bytes         = head.size;",
        [CLASSES],
    ),
    (
        "sched/em_size_class_message_bank.sv",
        "insert_i != '0 && !refused_i &&",
        "insert_i != '0 &&",
        [RANDOM],
    ),
    (
        "sched/em_size_class_message_bank.sv",
        "passed_q       <= passes ||",
        "passed_q       <=",
        [RANDOM],
    ),
    (
        "sched/em_size_class_grant.sv",
        "{OfferWidth{(match_i & ~response_i) != '0}};",
        "{OfferWidth{1'b1}};",
        [CLASSES],
    ),
    (
        "sched/em_size_class_demand.sv",
        "ask_i.peer == node_t'(Port) ||",
        "ask_i.peer == node_t'(Port) || ask_i.response && ask_i.peer == '0 ||",
        [CLASSES],
    ),
    (
        "sched/em_size_class_port_ends.sv",
        "if (source_waits) start_q[p] <= of_source;",
        "",
        [CLASSES],
    ),
    (
        "sched/em_size_class_matcher.sv",
        "(source_least_i[s][d] || !source_holds[s]);",
        "1'b1;",
        [CLASSES, "formal -k em_size_class_matcher_proof"],
    ),
    (
        "sched/em_size_class_precedence.sv",
        "goes_first(class_i[j], class_i[i], !turn_i[Bit]);",
        "goes_first(class_i[j], class_i[i], turn_i[Bit]);",
        [CLASSES, "formal -k em_precedence_choice_proof"],
    ),
    (
        "sched/em_precedence_choice.sv",
        ".turn_i  (turn_next_i ^ PortWidth'(p)),",
        ".turn_i  (turn_i ^ PortWidth'(p)),",
        [CLASSES, "formal -k em_precedence_choice_proof"],
    ),
    (
        "sched/em_size_class_mutual_least.sv",
        "assign before_to[i]   = valid_i[i][p] &&",
        "assign before_to[i]   =",
        [CLASSES],
    ),
    (
        "sched/em_size_class_choice.sv",
        ".turn_i   (turn_q ^ PortWidth'(s)),",
        ".turn_i   (turn_i ^ PortWidth'(s)),",
        [CLASSES, "formal -k em_precedence_choice_proof"],
    ),
    (
        "sched/em_size_class_scheduler.sv",
        "if (!rst_ni) turn_q <= port_t'(-2);",
        "if (!rst_ni) turn_q <= port_t'(-1);",
        [CLASSES],
    ),
]
