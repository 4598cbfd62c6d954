/// Makes the compute side's decisions: which message waits for each destination, which id it gets,
/// when its request goes out, how it ends. It does one operation at a time;
/// docs/internals/rtl-host.md describes it.
module em_host_core
  import em_pkg::*;
  import em_host_pkg::*;
  import em_host_ports_pkg::*;
#(
    parameter int unsigned Nodes     = 4,
    /// Notifications, and reads, that may be active for one destination.
    parameter int unsigned X         = 3,
    parameter int unsigned Entries   = 16,
    parameter int unsigned ReadSlots = 4
) (
    input logic clk_i,
    input logic rst_ni,
    /// Requests end at once, with EndLinkDown.
    input logic down_i,

    input  to_core_t      core_i,
    output from_core_t    core_o,
    input  data_to_core_t data_i,
    output core_to_data_t data_o,

    output logic [Entries-1:0] is_open_o,
    output logic [Entries-1:0] is_ended_o,
    output logic [Entries-1:0] timed_o,
    input  timers_to_core_t    timers_i,
    output core_to_timers_t    timers_o
);

  localparam int unsigned EntryBits = $clog2(Entries);
  localparam int unsigned CreditBits = $clog2(ReadSlots + 1);
  localparam int unsigned TableDepth = Nodes * 2 * RowsMax;
  localparam int unsigned TableBits = $clog2(TableDepth);

  typedef enum logic [2:0] {
    StIdle,
    StExec,
    StPump,   // opens what may be opened of a destination's queue
    StFail,   // ends all entries of a peer, or all
    StHeard,  // answers word of a peer
    StWalk    // forgets all destinations
  } state_e;

  state_e state_q, state_d;
  op_e op_q, op;
  request_t request_q, stored, subject;
  event_t event_q;
  sent_t sent_q;
  entry_t op_entry_q, scan_q, entry, asked, free, next;
  node_t peer_q, peer, asked_peer;
  destination_t dest, dest_q, dest_d, dest_read;
  message_id_t new_id, id, event_id;
  word_t word;
  logic [EntryBits-1:0] table_entry;
  logic [CreditBits-1:0] credits_q;
  slot_t slot;
  entry_state_t is;
  entry_commands_t does, commands;
  completion_t how;
  logic any_free, freed, accept, go, may_open, match, is_write, is_all, refuses, completes;
  logic emits_control, emits_read, last_scan, last_walk, walking, room;
  logic request_bad_q, request_write_q, is_new;

  assign event_id = core_i.message_event.id;
  assign word     = data_i.progress.word;
  assign room     = any_free && (core_i.request.write ? data_i.whole : credits_q != '0);

  em_host_choice u_choice (
      .idle_i         (state_q == StIdle && !walking),
      .accept_o       (accept),
      .op_o           (op),
      .peer_o         (peer),
      .entry_o        (asked),
      .room_i         (room),
      .entry_peer_i   (asked_peer),
      .progress_i     (data_i.progress),
      .core_i,
      .timers_i,
      .event_ready_o  (core_o.event_ready),
      .sent_ready_o   (data_o.sent_ready),
      .expired_ready_o(timers_o.expired_ready),
      .request_ready_o(core_o.request_ready)
  );

  em_host_entries #(
      .Entries(Entries)
  ) u_entries (
      .any_free_o (any_free),
      .free_o     (free),
      .entry_i    (entry),
      .commands_i (commands),
      .request_i  (request_q),
      .slot_i     (data_i.whole_slot),
      .id_i       (new_id),
      .link_i     (commands.enqueue && dest.queued),
      .link_from_i(dest.tail),
      .ask_entry_i(asked),
      .ask_peer_o (asked_peer),
      .request_o  (stored),
      .slot_o     (slot),
      .next_o     (next),
      .id_o       (id),
      .state_o    (is),
      .freed_o    (freed),
      .open_o     (is_open_o),
      .ended_o    (is_ended_o),
      .*
  );

  em_host_rows #(
      .X(X)
  ) u_rows (
      .destination_i  (dest),
      .write_i        (is_write),
      .may_open_o     (may_open),
      .id_o           (new_id),
      .does_i         (does),
      .entry_i        (entry),
      .next_i         (next),
      .pops_i         (state_q == StPump && (does.open || does.dequeue)),
      .close_id_i     (id),
      .close_exposed_i(op_q != OpSent || sent_q.exposed),
      .is_word_i      (state_q == StExec && op_q == OpWord),
      .word_i         (word.kind),
      .destination_o  (dest_d)
  );

  em_host_effects u_effects (
      .execute_i    (state_q == StExec),
      .pump_i       (state_q == StPump),
      .fail_i       (state_q == StFail),
      .op_i         (op_q),
      .bad_i        (request_bad_q),
      .link_down_i  (down_i),
      .peer_down_i  (dest.down),
      .queued_i     (dest.queued),
      .may_open_i   (may_open),
      .match_i      (match),
      .event_i      (event_q),
      .sent_closes_i(sent_q.closes),
      .state_i      (is),
      .all_i        (is_all),
      .concerned_i  (is_all || stored.peer == peer_q),
      .token_i      (subject.token),
      .does_o       (does),
      .refuses_o    (refuses),
      .how_o        (how)
  );

  em_host_destinations #(
      .Nodes(Nodes)
  ) u_destinations (
      .walk_i       (state_q == StFail && state_d == StWalk),
      .walking_o    (walking),
      .last_o       (last_walk),
      .read_i       (accept),
      .read_node_i  (peer),
      .destination_o(dest_read),
      .write_i      (go && state_q inside {StExec, StPump}),
      .write_node_i (peer_q),
      .destination_i(dest_d),
      .*
  );

  em_host_ram #(
      .Width(EntryBits),
      .Depth(TableDepth)
  ) u_table (
      .clk_i,
      .write_i        (commands.open),
      .write_address_i(TableBits'({subject.peer, is_write, new_id.row})),
      .write_data_i   (EntryBits'(entry)),
      .read_i         (accept),
      .read_address_i (TableBits'({core_i.message_event.peer, event_id.write, event_id.row})),
      .read_data_o    (table_entry)
  );

  assign is_all    = word.kind == ItemLinkDown;
  assign last_scan = scan_q == entry_t'(Entries - 1);
  assign dest      = (state_q == StExec) ? dest_read : dest_q;
  assign is_new    = state_q == StExec && op_q == OpRequest;
  assign subject   = is_new ? request_q : stored;
  assign is_write  = is_new ? request_write_q : is.write;
  assign match     = is.open && id == event_q.id && stored.peer == event_q.peer
      && (!is.write || is.sent);
  always_comb begin
    unique case (state_q)
      StPump:  entry = dest_q.head;
      StFail:  entry = scan_q;
      default: entry = (op_q == OpRequest) ? free
                     : (op_q == OpEvent) ? entry_t'(table_entry) : op_entry_q;
    endcase
  end

  assign completes     = refuses || (does.finish && !is.ended);
  assign emits_control = does.open || state_q == StHeard;
  assign emits_read    = does.cancel || (does.open && !is_write);
  assign go            = (!emits_control || core_i.control_ready)
      && (!completes || core_i.completion_ready) && (!emits_read || core_i.read_ready);
  assign commands      = go ? does : '0;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:  if (accept) state_d = (op == OpWord && is_all) ? StFail : StExec;
      StExec:
      if (op_q == OpWord) state_d = (word.kind == ItemPeerUp) ? StIdle : StFail;
      else if (go) state_d = (op_q != OpRequest && dest_d.queued) ? StPump : StIdle;
      StPump:  if (go) state_d = ((does.open || does.dequeue) && dest_d.queued) ? StPump : StIdle;
      StFail:  if (go && last_scan) state_d = is_all ? StWalk : StHeard;
      StWalk:  if (last_walk) state_d = StIdle;
      default: if (go) state_d = StIdle;
    endcase
  end

  assign data_o.word_ready = state_q != StIdle && state_d == StIdle && op_q == OpWord;

  always_comb begin
    core_o.control = '{
        sub_type: is_write ? SubNotification : SubStart,
        acknowledged: subject.opcode == OpAcknowledgedWrite, opcode: subject.opcode,
        node: subject.peer, id: new_id, bytes: subject.bytes, code: '0,
        address: subject.address, operands: subject.operands};
    if (state_q == StHeard) begin
      core_o.control = '{sub_type: SubSingle, node: peer_q, code: StatusLinkDisabled, default: '0};
    end
  end

  assign core_o.control_valid    = emits_control && go;
  assign core_o.read_valid       = emits_read && go;
  assign core_o.read             = '{cancel: does.cancel, peer: subject.peer,
                                     id: does.cancel ? id : new_id, bytes: subject.bytes,
                                     token: subject.token};
  assign core_o.completion_valid = completes && go;
  assign core_o.completion       = how;
  assign data_o.take             = go && (does.take || refuses) && is_write;
  assign data_o.free             = (freed && is.write) || (go && refuses && is_write);
  assign data_o.free_slot        = refuses ? data_i.whole_slot : slot;
  assign data_o.open             = commands.open && is_write;
  assign data_o.opened           = '{
      entry: entry, id: new_id, peer: subject.peer, bytes: subject.bytes,
      acknowledged: subject.opcode == OpAcknowledgedWrite, address: subject.address,
      slot: does.take ? data_i.whole_slot : slot};
  assign timers_o.start          = commands.take;
  assign timers_o.start_entry    = entry;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q   <= StIdle;
      op_q      <= OpRequest;
      scan_q    <= '0;
      credits_q <= CreditBits'(ReadSlots);
    end else begin
      state_q   <= state_d;
      credits_q <= credits_q - CreditBits'(commands.take && !is_write)
                   + CreditBits'(freed && !is.write);
      if (accept) op_q <= op;
      if (state_q == StFail && go) scan_q <= last_scan ? '0 : scan_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (go) dest_q <= dest_d;
    if (accept) begin
      request_q                        <= core_i.request.request;
      {request_bad_q, request_write_q} <= {core_i.request.bad, core_i.request.write};
      {event_q, sent_q}                <= {core_i.message_event, data_i.progress.sent};
      {peer_q, op_entry_q}             <= {peer, asked};
    end
  end

endmodule
