/// Chooses the next operation of a host's core: peer notices first, then ends, which make room,
/// then beginnings. Combinational.
module em_host_choice
  import em_pkg::*;
  import em_host_pkg::*;
  import em_host_ports_pkg::*;
(
    input  logic            idle_i,
    output logic            accept_o,
    output op_e             op_o,
    output node_t           peer_o,
    output entry_t          entry_o,

    input  progress_t       progress_i,
    input  to_core_t        core_i,
    input  timers_to_core_t timers_i,
    output logic            event_ready_o,
    output logic            sent_ready_o,
    output logic            expired_ready_o,
    output logic            request_ready_o,
    /// There is an entry for a request, and its data or a place for its response.
    input  logic            room_i,
    /// The peer of `entry_o`.
    input  node_t           entry_peer_i
);

  logic word, ended, sent, expired;

  assign word    = idle_i && progress_i.word_valid;
  assign ended   = idle_i && !progress_i.word_valid && core_i.event_valid;
  assign sent    = idle_i && !progress_i.word_valid && !core_i.event_valid && progress_i.sent_valid;
  assign expired = idle_i && !progress_i.word_valid && !core_i.event_valid && !progress_i.sent_valid
      && timers_i.expired;

  assign event_ready_o   = ended;
  assign sent_ready_o    = sent;
  assign expired_ready_o = expired;
  assign request_ready_o = idle_i && room_i && !word && !ended && !sent && !expired;
  assign accept_o        = word || ended || sent || expired
      || (request_ready_o && core_i.request.valid);
  assign entry_o         = progress_i.sent_valid ? progress_i.sent.entry : timers_i.entry;

  always_comb begin
    op_o   = OpRequest;
    peer_o = core_i.request.request.peer;
    if (word) begin
      op_o   = OpWord;
      peer_o = progress_i.word.peer;
    end else if (ended) begin
      op_o   = OpEvent;
      peer_o = core_i.message_event.peer;
    end else if (sent || expired) begin
      op_o   = sent ? OpSent : OpExpired;
      peer_o = entry_peer_i;
    end
  end

endmodule
