/// Makes the compute side's decisions: which message waits for each destination, which id it gets,
/// when its request goes out, how it ends. It does one operation at a time;
/// docs/internals/rtl-host.md describes it.
module em_host_core
  import em_pkg::*;
  import em_host_pkg::*;
#(
    parameter int unsigned Nodes     = 4,
    /// Notifications, and reads, that may be active for one destination.
    parameter int unsigned X         = 3,
    parameter int unsigned Entries   = 16,
    parameter int unsigned ReadSlots = 4
) (
    input logic clk_i,
    input logic  rst_ni,
    /// Requests end at once, with EndLinkDown.
    input logic  down_i,

    input  logic     request_valid_i,
    output logic     request_ready_o,
    // As em_host_check has it.
    input  request_t request_i,
    input  logic     request_bad_i,
    input  logic     request_write_i,
    // Data of the oldest write that is whole.
    input  logic     data_whole_i,
    input  slot_t    data_slot_i,
    output logic     data_take_o,
    output logic     data_free_o,
    output slot_t    data_free_slot_o,

    output logic            completion_valid_o,
    input  logic            completion_ready_i,
    output completion_t     completion_o,
    output logic            control_valid_o,
    input  logic            control_ready_i,
    output control_fields_t control_o,
    output logic            read_valid_o,
    input  logic            read_ready_i,
    output read_command_t   read_o,
    input  logic            event_valid_i,
    output logic            event_ready_o,
    input  event_t          event_i,

    output logic               open_o,
    output opened_t            opened_o,
    output logic [Entries-1:0] is_open_o,
    output logic [Entries-1:0] is_ended_o,
    input  logic               sent_valid_i,
    output logic               sent_ready_o,
    input  sent_t              sent_i,
    /// Taken when all of it is done.
    input  logic               word_valid_i,
    output logic               word_ready_o,
    input  word_t              word_i,

    output logic [Entries-1:0] timed_o,
    output logic               start_o,
    output entry_t             start_entry_o,
    input  logic               expired_i,
    output logic               expired_ready_o,
    input  entry_t             expired_entry_i
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
  logic [EntryBits-1:0] table_entry;
  logic [CreditBits-1:0] credits_q;
  slot_t slot;
  entry_state_t is;
  entry_commands_t does, commands;
  completion_t how;
  logic any_free, freed, accept, go, may_open, match, is_write, is_all, refuses, completes;
  logic emits_control, emits_read, last_scan, last_walk, walking, room;
  logic request_bad_q, request_write_q, is_new;

  assign event_id = event_i.id;
  assign room     = any_free && (request_write_i ? data_whole_i : credits_q != '0);

  em_host_choice u_choice (
      .idle_i        (state_q == StIdle && !walking),
      .accept_o      (accept),
      .op_o          (op),
      .peer_o        (peer),
      .entry_o       (asked),
      .room_i        (room),
      .request_peer_i(request_i.peer),
      .entry_peer_i  (asked_peer),
      .*
  );

  em_host_entries #(
      .Entries(Entries)
  ) u_entries (
      .any_free_o (any_free),
      .free_o     (free),
      .entry_i    (entry),
      .commands_i (commands),
      .request_i  (request_q),
      .slot_i     (data_slot_i),
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
      .word_i         (word_i.kind),
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
      .read_address_i (TableBits'({event_i.peer, event_id.write, event_id.row})),
      .read_data_o    (table_entry)
  );

  assign is_all    = word_i.kind == ItemLinkDown;
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
  assign go = (!emits_control || control_ready_i) && (!completes || completion_ready_i)
      && (!emits_read || read_ready_i);
  assign commands = go ? does : '0;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:  if (accept) state_d = (op == OpWord && is_all) ? StFail : StExec;
      StExec:
      if (op_q == OpWord) state_d = (word_i.kind == ItemPeerUp) ? StIdle : StFail;
      else if (go) state_d = (op_q != OpRequest && dest_d.queued) ? StPump : StIdle;
      StPump:  if (go) state_d = ((does.open || does.dequeue) && dest_d.queued) ? StPump : StIdle;
      StFail:  if (go && last_scan) state_d = is_all ? StWalk : StHeard;
      StWalk:  if (last_walk) state_d = StIdle;
      default: if (go) state_d = StIdle;
    endcase
  end

  assign word_ready_o = state_q != StIdle && state_d == StIdle && op_q == OpWord;

  always_comb begin
    control_o = '{
        sub_type: is_write ? SubNotification : SubStart,
        acknowledged: subject.opcode == OpAcknowledgedWrite, opcode: subject.opcode,
        node: subject.peer, id: new_id, bytes: subject.bytes, code: '0,
        address: subject.address, operands: subject.operands};
    if (state_q == StHeard) begin
      control_o = '{sub_type: SubSingle, node: peer_q, code: StatusLinkDisabled, default: '0};
    end
  end

  assign control_valid_o    = emits_control && go;
  assign read_valid_o       = emits_read && go;
  assign read_o             = '{cancel: does.cancel, peer: subject.peer,
                                id: does.cancel ? id : new_id, bytes: subject.bytes,
                                token: subject.token};
  assign {completion_valid_o, completion_o} = {completes && go, how};
  assign data_take_o        = go && (does.take || refuses) && is_write;
  assign data_free_o        = (freed && is.write) || (go && refuses && is_write);
  assign data_free_slot_o   = refuses ? data_slot_i : slot;
  assign open_o             = commands.open && is_write;
  assign opened_o           = '{
      entry: entry, id: new_id, peer: subject.peer, bytes: subject.bytes,
      acknowledged: subject.opcode == OpAcknowledgedWrite, address: subject.address,
      slot: does.take ? data_slot_i : slot};
  assign {start_o, start_entry_o} = {commands.take, entry};

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
      request_q                        <= request_i;
      {request_bad_q, request_write_q} <= {request_bad_i, request_write_i};
      {event_q, sent_q}                <= {event_i, sent_i};
      {peer_q, op_entry_q}             <= {peer, asked};
    end
  end

endmodule
