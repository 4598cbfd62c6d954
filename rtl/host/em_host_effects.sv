/// Computes how an operation of the core changes its entry, and how the message ends if it does.
/// Combinational.
module em_host_effects
  import em_host_pkg::*;
(
    // What the core is at: an operation, the head of a queue, or an entry after a failure.
    input logic         execute_i,
    input logic         pump_i,
    input logic         fail_i,
    input op_e          op_i,
    // Of a request.
    input logic         bad_i,
    input logic         link_down_i,
    input logic         peer_down_i,
    /// Others wait for its destination.
    input logic         queued_i,
    input logic         may_open_i,
    /// The entry is the one that an event means.
    input logic         match_i,
    input event_t       event_i,
    input logic         sent_closes_i,
    input entry_state_t state_i,
    // The link failed; it, or the peer of the entry, did.
    input logic         all_i,
    input logic         concerned_i,
    input token_t       token_i,

    output entry_commands_t does_o,
    /// The request ends without an entry.
    output logic            refuses_o,
    output completion_t     how_o
);

  always_comb begin
    does_o    = '0;
    refuses_o = 1'b0;
    how_o     = '{token: token_i, default: '0};
    if (execute_i) begin
      unique case (op_i)
        OpRequest: begin
          refuses_o      = bad_i || link_down_i || peer_down_i;
          how_o.code     = bad_i ? EndBadRequest : link_down_i ? EndLinkDown : EndPeerDown;
          does_o.take    = !refuses_o;
          does_o.open    = !refuses_o && !queued_i && may_open_i;
          does_o.enqueue = !refuses_o && !does_o.open;
        end
        OpEvent: begin
          does_o.finish = match_i && event_i.ends;
          does_o.close  = match_i && event_i.closes;
          how_o.remote  = event_i.remote;
          how_o.code    = event_i.code;
        end
        OpSent: begin
          does_o.sent   = 1'b1;
          does_o.close  = sent_closes_i;
          does_o.finish = sent_closes_i;
        end
        OpExpired: begin
          // Only the receive clock knows whether the last chunk of a read came first.
          does_o.cancel = state_i.open && !state_i.write;
          does_o.finish = !does_o.cancel;
          how_o.code    = EndTimeout;
        end
        default: ;
      endcase
    end else if (pump_i) begin
      does_o.dequeue = state_i.ended;
      does_o.open    = !state_i.ended && may_open_i;
    end else if (fail_i) begin
      does_o.kill   = state_i.used && concerned_i;
      does_o.finish = does_o.kill;
      how_o.code    = all_i ? EndLinkDown : EndPeerDown;
    end
  end

endmodule
