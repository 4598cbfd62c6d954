"""Mutants of the host."""

from flow.mutants.checks import bench

HOST = "tb/em_host_pair/test_em_host_pair.py -k 3"
HOST_FAULTS = "tb/em_host_pair/test_em_host_faults.py"
HOST_GRANTS = "tb/em_host_grants"

MUTANTS = [
    (
        "host/em_encode_control.sv",
        "{payload: control, header: SyncControl}",
        "{payload: control, header: SyncData}",
        [bench("em_encode_request"), bench("em_encode_chunk")],
    ),
    (
        "host/em_encode_request.sv",
        "covered[4+:NodeBits]   = '0;",
        "",
        [bench("em_encode_request")],
    ),
    (
        "host/em_encode_chunk.sv",
        "step_q == StepFirst && !valid_i",
        "step_q == StepFirst",
        [bench("em_encode_chunk")],
    ),
    (
        "host/em_encode_request.sv",
        "step_q == StepFirst && !valid_i",
        "step_q == StepFirst",
        [bench("em_encode_request")],
    ),
    (
        "host/em_encode_chunk.sv",
        "(left > bytes_t'(i))",
        "(left >= bytes_t'(i))",
        [bench("em_encode_chunk")],
    ),
    (
        "host/em_host_ram.sv",
        "is_forward_q <= write_i && write_address_i == read_address_i;",
        "is_forward_q <= 1'b0;",
        ["tb/em_host_ram"],
    ),
    (
        "host/em_host_ring.sv",
        "write_q <= kept_q;",
        "write_q <= write_q;",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_timers.sv",
        "&& !late[TimeBits-1];",
        "&& late[TimeBits-1];",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_write_data.sv",
        "if (hold_i) released[hold_slot_i] = 1'b0;",
        "",
        [HOST],
    ),
    (
        "host/em_host_check.sv",
        "|| request_i.bytes > bytes_t'(MessageBytes)",
        "",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_rows.sv",
        ": destination_i.writes_active == '0);",
        ": 1'b1);",
        [HOST],
    ),
    (
        "host/em_host_rows.sv",
        "GenerationBits'(!close_exposed_i);",
        "GenerationBits'(1'b0);",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_entries.sv",
        "~ended_q & ~cancelled_q & ~posted_q;",
        "~ended_q & ~cancelled_q;",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_choice.sv",
        "op_o   = sent ? OpSent : OpExpired;",
        "op_o   = OpSent;",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_destinations.sv",
        "forgotten.down = !resetting_q;",
        "forgotten.down = 1'b0;",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_effects.sv",
        "does_o.cancel = state_i.open && !state_i.write;",
        "does_o.cancel = 1'b0;",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_core.sv",
        "? StPump : StIdle;\n      StPump:",
        "? StIdle : StIdle;\n      StPump:",
        [HOST],
    ),
    (
        "host/em_host_chunk.sv",
        "(item_q.kind == ItemRequest || item_q.bytes == due);",
        "1'b1;",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_chunk.sv",
        "if (!sent_q_valid) state_d",
        "if (1'b1) state_d",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_chunk.sv",
        "assign sent_valid    = sent_q_valid && (sent_started_q || down_i);",
        "assign sent_valid    = sent_q_valid;",
        [HOST],
    ),
    (
        "host/em_host_responses.sv",
        "phase: word_i.phase, words:",
        "phase: '0, words:",
        [HOST],
    ),
    (
        "host/em_host_mux.sv",
        "assign second = open_q ? second_q : choice;",
        "assign second = choice;",
        [HOST],
    ),
    (
        "host/em_host_data.sv",
        "(chunk.is_response ? response_data : write_data),",
        "(response_data),",
        [HOST],
    ),
    (
        "host/em_host_tx.sv",
        "|| (control_ready && !from_core.control_valid && !refusal_valid);",
        "|| control_ready;",
        [HOST],
    ),
    (
        "host/em_host_parse.sv",
        "if (memory_i.ending != EndSound)",
        "if (memory_i.ending == EndAborted)",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_peers.sv",
        "is_new        = !served.seen || is_after(id.generation, served.generation);",
        "is_new        = 1'b1;",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_peers.sv",
        "if (offset != stored_d.received) stored_d.broken = 1'b1;",
        "",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_reads.sv",
        "offset == read.moved &&",
        "1'b1 &&",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_reads.sv",
        "&& !is_data && out.is_event && !flush_i\n      && (!valid_q || read_tready_i);",
        "&& out.is_event && !flush_i;",
        [HOST],
    ),
    (
        "host/em_host_memory.sv",
        "command_valid && is_read && write_quiet && !rmw_busy;",
        "command_valid && is_read && !rmw_busy;",
        [HOST],
    ),
    (
        "host/em_host_acks.sv",
        "assign failed        = done_q.error || (kept && !done_q.first);",
        "assign failed        = done_q.error;",
        [HOST_FAULTS],
    ),
    (
        "host/em_axi_write.sv",
        "|| beat_q[BeatBits-1:0] == '1;",
        ";",
        [HOST],
    ),
    (
        "host/em_axi_read.sv",
        "swallow         = lane != '0 && beat_q == '0 && job_beats != count_t'(1);",
        "swallow         = lane != '0 && beat_q == '0;",
        [HOST],
    ),
    (
        "host/em_rmw.sv",
        "stores_o = old_i == operands_i[0];",
        "stores_o = 1'b1;",
        [HOST],
    ),
    (
        "host/em_host_rmw.sv",
        "if (m_axi_i.read.r.resp != '0) code_q <= StatusBadAddress;",
        "",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_grants.sv",
        "assign crossing    = waits ? waiting : item_i;",
        "assign crossing    = item_i;",
        [HOST_GRANTS],
    ),
    (
        "host/em_host_link.sv",
        "StForget: if (!forgetting_i && quiet_i && flushed_i)",
        "StForget: if (!forgetting_i && quiet_i)",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_reads.sv",
        ".pop_i   (step && !flush_i),",
        ".pop_i   (step),",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_link.sv",
        "if (up_i && !fail_q) state_d = StUp;",
        "if (up_i) state_d = StUp;",
        [HOST_FAULTS],
    ),
    (
        "host/em_host_rx.sv",
        "remote: arrival.code != StatusOk, code: arrival.code};",
        "remote: 1'b1, code: arrival.code};",
        [HOST],
    ),
    (
        "host/em_host.sv",
        ".read_ready_i (tx_out.response_ready),",
        ".read_ready_i (tx_out.response_ready && !down_tx),",
        [HOST_FAULTS],
    ),
]
