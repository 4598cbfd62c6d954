/// The messages from their request to their last possible event: an entry each.
///
/// An entry is QUEUED, then OPEN under an id; ENDED once its completion was given. It is free when
/// it has ended and is neither queued nor open. All commands apply to `entry_i`.
module em_host_entries
  import em_pkg::*;
  import em_host_pkg::*;
#(
    parameter int unsigned Entries = 16
) (
    input logic clk_i,
    input logic rst_ni,

    /// The entry to take next.
    output logic            any_free_o,
    output entry_t          free_o,
    input  entry_t          entry_i,
    input  entry_commands_t commands_i,
    input  request_t        request_i,
    input  slot_t           slot_i,
    input  id_t             id_i,
    // The entry behind another in the queue of their destination.
    input  logic                link_i,
    input  entry_t              link_from_i,

    // The peer of another entry.
    input  entry_t              ask_entry_i,
    output node_t               ask_peer_o,

    // Of `entry_i`.
    output request_t            request_o,
    output slot_t               slot_o,
    output entry_t              next_o,
    output id_t                 id_o,
    output entry_state_t        state_o,
    /// It is free from the next edge on.
    output logic                freed_o,

    output logic [Entries-1:0] timed_o,
    output logic [Entries-1:0] open_o,
    output logic [Entries-1:0] ended_o
);

  localparam int unsigned EntryBits = $clog2(Entries);
  typedef logic [EntryBits-1:0] index_t;
  typedef logic [Entries-1:0] flags_t;

  request_t requests_q[Entries];
  slot_t slots_q[Entries];
  logic [EntryBits-1:0] nexts_q[Entries];
  id_t ids_q[Entries];
  node_t peers_q[Entries];
  flags_t used_q, queued_q, open_q, ended_q, sent_q, cancelled_q, posted_q, lowest, here;
  flags_t used_d, queued_d, open_d, ended_d;
  index_t at;

  assign at   = entry_i[EntryBits-1:0];
  assign here = flags_t'(1) << at;

  em_arb_prio #(
      .Requests(Entries)
  ) u_lowest (
      .request_i(~used_q),
      .grant_o  (lowest)
  );

  always_comb begin
    free_o = '0;
    for (int unsigned i = 0; i < Entries; i++) begin
      if (lowest[i]) free_o = entry_t'(i);
    end
  end

  assign ask_peer_o  = peers_q[ask_entry_i[EntryBits-1:0]];
  assign any_free_o  = used_q != '1;
  assign request_o   = requests_q[at];
  assign slot_o      = slots_q[at];
  assign next_o      = entry_t'(nexts_q[at]);
  assign id_o        = ids_q[at];
  assign state_o     = '{
      used: used_q[at], queued: queued_q[at], open: open_q[at], ended: ended_q[at],
      sent: sent_q[at], write: request_o.opcode inside {OpPostedWrite, OpAcknowledgedWrite}};
  assign timed_o     = used_q & ~ended_q & ~cancelled_q & ~posted_q;
  assign open_o      = open_q;
  assign ended_o     = ended_q;

  always_comb begin
    used_d   = used_q;
    queued_d = queued_q;
    open_d   = open_q;
    ended_d  = ended_q;
    if (commands_i.take) begin
      used_d[at]  = 1'b1;
      ended_d[at] = 1'b0;
    end
    if (commands_i.enqueue) queued_d[at] = 1'b1;
    if (commands_i.dequeue || commands_i.open || commands_i.kill) queued_d[at] = 1'b0;
    if (commands_i.open) open_d[at] = 1'b1;
    if (commands_i.close || commands_i.kill) open_d[at] = 1'b0;
    if (commands_i.finish) ended_d[at] = 1'b1;
    freed_o = used_q[at] && ended_d[at] && !queued_d[at] && !open_d[at] && !commands_i.take;
    if (freed_o) used_d[at] = 1'b0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      used_q      <= '0;
      queued_q    <= '0;
      open_q      <= '0;
      ended_q     <= '0;
      sent_q      <= '0;
      cancelled_q <= '0;
      posted_q    <= '0;
    end else begin
      used_q   <= used_d;
      queued_q <= queued_d;
      open_q   <= open_d;
      ended_q  <= ended_d;
      if (commands_i.take) begin
        sent_q      <= sent_q & ~here;
        cancelled_q <= cancelled_q & ~here;
        posted_q    <= (request_i.opcode == OpPostedWrite) ? posted_q | here : posted_q & ~here;
      end
      if (commands_i.sent) sent_q <= sent_q | here;
      if (commands_i.cancel) cancelled_q <= cancelled_q | here;
    end
  end

  always_ff @(posedge clk_i) begin
    if (commands_i.take) begin
      requests_q[at] <= request_i;
      slots_q[at]    <= slot_i;
      peers_q[at]    <= request_i.peer;
    end
    if (commands_i.open) ids_q[at] <= id_i;
    if (link_i) nexts_q[link_from_i[EntryBits-1:0]] <= at;
  end

endmodule
