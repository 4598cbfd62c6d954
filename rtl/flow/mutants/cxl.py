"""Mutants of CXL over Ethernet."""

from flow.mutants.checks import bench, proof

MUTANTS = [
    (
        "common/em_ram_bytes.sv",
        "if (write_i[i]) words_q",
        "if (write_i[i&~1]) words_q",
        [bench("em_cxl_cache")],
    ),
    (
        "cxl/em_cxl_cache_set.sv",
        "victim_o      = at.present && |at.dirty;",
        "victim_o      = at.present && &at.dirty;",
        [bench("em_cxl_cache"), proof("em_cxl_cache_set")],
    ),
    (
        "cxl/em_cxl_cache_set.sv",
        "idle[w]  = !set_i[w].fetching;",
        "idle[w]  = 1'b1;",
        [bench("em_cxl_cache"), proof("em_cxl_cache_set")],
    ),
    (
        "cxl/em_cxl_cache_set.sv",
        "if (found && &at.valid) step_o = StepHit;",
        "if (found && |at.valid) step_o = StepHit;",
        [bench("em_cxl_cache"), proof("em_cxl_cache_set")],
    ),
    (
        "cxl/em_cxl_cache_tags.sv",
        "forward_q <= next_index == index_q;",
        "forward_q <= 1'b0;",
        [bench("em_cxl_cache"), proof("em_cxl_cache_tags")],
    ),
    (
        "cxl/em_cxl_cache_fetches.sv",
        "begin_i ? id_i : next_q[first];",
        "begin_i ? id_i : last;",
        [bench("em_cxl_cache")],
    ),
    (
        "cxl/em_cxl_cache_lines.sv",
        "if (write_q[i] && read_q.respond)",
        "if (write_q[i])",
        [bench("em_cxl_cache")],
    ),
    (
        "cxl/em_cxl_cache.sv",
        "!held_valid_q && !stalls && room_i;",
        "!held_valid_q && room_i;",
        [bench("em_cxl_cache")],
    ),
    (
        "cxl/em_cxl_cache.sv",
        "if (op_q.op == OpFill && op_q.drop) decision.write = ~valid;",
        "if (op_q.op == OpFill && op_q.drop) decision.write = '1;",
        [bench("em_cxl_cache")],
    ),
    (
        "cxl/em_cxl_control.sv",
        "signalled.current = at_least_floor(expired.current >> 1);",
        "signalled.current = expired.current >> 1;",
        [bench("em_cxl_rate"), proof("em_cxl_control")],
    ),
    (
        "cxl/em_cxl_control.sv",
        "signalled.current = expired.current - expired.increase;",
        "signalled.current = expired.current;",
        [bench("em_cxl_rate")],
    ),
    (
        "cxl/em_cxl_bucket.sv",
        "(valid_i && ready_o) ? TokenBits'(cost)",
        "valid_i ? TokenBits'(cost)",
        [bench("em_cxl_rate"), proof("em_cxl_bucket")],
    ),
    (
        "cxl/em_cxl_rate.sv",
        ".rate_i(state_o.current),",
        ".rate_i(state_o.target),",
        [bench("em_cxl_rate")],
    ),
    (
        "cxl/em_cxl_responder.sv",
        "kept_q[place_t'(next_q)] && next_q - to_answer_q < Size;",
        "kept_q[place_t'(next_q)];",
        [bench("em_cxl_responder"), proof("em_cxl_responder")],
    ),
    (
        "cxl/em_cxl_responder.sv",
        "if (request_sequence_i - to_answer_d < Size) begin",
        "if (request_sequence_i - to_answer_d <= Size) begin",
        [bench("em_cxl_responder"), proof("em_cxl_responder")],
    ),
    (
        "cxl/em_cxl_responder.sv",
        ".write_i        (arrives && takes),",
        ".write_i        (arrives),",
        [bench("em_cxl_responder"), proof("em_cxl_responder")],
    ),
    (
        "cxl/em_cxl_requester.sv",
        "walk_d  = (response_sequence_i == acked_q) ? WalkNone : WalkForward;",
        "walk_d  = WalkNone;",
        [bench("em_cxl_requester")],
    ),
    (
        "cxl/em_cxl_requester.sv",
        "&& unsent_q - oldest_q < sequence_t'(Window);",
        "&& unsent_q - oldest_q <= sequence_t'(Window);",
        [bench("em_cxl_requester"), proof("em_cxl_requester")],
    ),
    (
        "cxl/em_cxl_requester.sv",
        "stores                                   = 1'b1;",
        "stores                                   = response_sequence_i != oldest_q;",
        [bench("em_cxl_requester"), proof("em_cxl_requester")],
    ),
    (
        "cxl/em_cxl_tlb.sv",
        "for (int unsigned j = i; j < Entries; j++) begin",
        "for (int unsigned j = i + 1; j < Entries; j++) begin",
        [bench("em_cxl_translator")],
    ),
    (
        "cxl/em_cxl_translator.sv",
        "tlb_forget = tlb_hit;",
        "tlb_forget = 1'b0;",
        [bench("em_cxl_translator")],
    ),
    (
        "cxl/em_cxl_translator.sv",
        "if (bucket.overflown == '0 || is_last) searching_d = 1'b0;",
        "if (is_last) searching_d = 1'b0;",
        [bench("em_cxl_translator")],
    ),
    (
        "cxl/em_cxl_emit.sv",
        "octets = octets_t'(94);",
        "octets = octets_t'(93);",
        [bench("em_cxl_codec")],
    ),
    (
        "cxl/em_cxl_parse.sv",
        "else if (from[0]) fault_o = FaultSource;",
        "else if (from[40]) fault_o = FaultSource;",
        [bench("em_cxl_codec")],
    ),
    (
        "cxl/em_cxl_tx.sv",
        "second_q <= is_long && !second_q;",
        "second_q <= is_long;",
        [bench("em_cxl_codec")],
    ),
    (
        "cxl/em_cxl_rx.sv",
        "assign rest  = (beats_q == 2'd1) ?",
        "assign rest  = (beats_q != 2'd0) ?",
        [bench("em_cxl_codec")],
    ),
]
