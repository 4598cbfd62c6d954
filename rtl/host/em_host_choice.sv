/// Chooses the next operation of a host's core: peer notices first, then ends, which make room,
/// then beginnings. Combinational.
module em_host_choice
  import em_pkg::*;
  import em_host_pkg::*;
(
    input  logic     idle_i,
    output logic     accept_o,
    output op_e      op_o,
    output node_t    peer_o,
    output entry_t   entry_o,

    input  logic     word_valid_i,
    input  word_t    word_i,
    input  logic     event_valid_i,
    output logic     event_ready_o,
    input  event_t   event_i,
    input  logic     sent_valid_i,
    output logic     sent_ready_o,
    input  sent_t    sent_i,
    input  logic     expired_i,
    output logic     expired_ready_o,
    input  entry_t   expired_entry_i,
    /// There is an entry for a request, and its data or a place for its response.
    input  logic     room_i,
    input  logic     request_valid_i,
    output logic     request_ready_o,
    input  node_t    request_peer_i,
    /// The peer of `entry_o`.
    input  node_t    entry_peer_i
);

  logic word, ended, sent, expired;

  assign word            = idle_i && word_valid_i;
  assign ended           = idle_i && !word_valid_i && event_valid_i;
  assign sent            = idle_i && !word_valid_i && !event_valid_i && sent_valid_i;
  assign expired         = idle_i && !word_valid_i && !event_valid_i && !sent_valid_i && expired_i;
  assign event_ready_o   = ended;
  assign sent_ready_o    = sent;
  assign expired_ready_o = expired;
  assign request_ready_o = idle_i && room_i && !word && !ended && !sent && !expired;
  assign accept_o        = word || ended || sent || expired || (request_ready_o && request_valid_i);
  assign entry_o         = sent_valid_i ? sent_i.entry : expired_entry_i;

  always_comb begin
    op_o   = OpRequest;
    peer_o = request_peer_i;
    if (word) begin
      op_o   = OpWord;
      peer_o = word_i.peer;
    end else if (ended) begin
      op_o   = OpEvent;
      peer_o = event_i.peer;
    end else if (sent || expired) begin
      op_o   = sent ? OpSent : OpExpired;
      peer_o = entry_peer_i;
    end
  end

endmodule
