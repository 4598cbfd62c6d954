/// The half of a host in the transmit clock: requests in, blocks out, completions.
module em_host_tx
  import em_pkg::*;
  import em_link_pkg::*;
  import em_host_pkg::*;
  import em_host_ports_pkg::*;
#(
    parameter int unsigned Nodes        = 4,
    parameter int unsigned X            = 3,
    parameter int unsigned Entries      = 16,
    parameter int unsigned WriteSlots   = 4,
    parameter int unsigned ReadSlots    = 4,
    parameter int unsigned MessageBytes = 1024,
    parameter int unsigned ChunkBytes   = 256,
    parameter int unsigned TimeBits     = 32
) (
    input logic                clk_i,
    input logic                rst_ni,
    input node_t               node_i,
    input logic [TimeBits-2:0] timeout_cycles_i,

    input  caller_to_host_t caller_i,
    output host_to_caller_t caller_o,

    output tx_memory_t memory_o,
    input  logic       memory_ready_i,

    /// The link is down: nothing goes out. All of before has ended once `flushed_o` is high, which
    /// it is until the link is up again; and from the reset on until anything may come.
    input  logic down_i,
    output logic flushed_o,

    /// Of it, a word of a response is taken in every cycle.
    input  rx_to_tx_t rx_i,
    output tx_to_rx_t rx_o
);

  localparam int unsigned EntryBits = $clog2(Entries);
  localparam int unsigned CompletionDepth = 4;

  to_core_t to_core;
  from_core_t from_core;
  core_to_data_t core_to_data;
  data_to_core_t data_to_core;
  core_to_timers_t core_to_timers;
  timers_to_core_t timers_to_core;
  logic refusal_valid, refusal_ready, control_valid, control_ready;
  control_fields_t control;
  reply_t refusal, reply;
  logic [EntryBits-1:0] expired_entry;
  logic [Entries-1:0] is_open, is_ended, timed;
  logic flushed_q, resetting, link_down_told;
  tx_memory_t control_unit, chunk_unit;
  logic control_unit_ready, chunk_unit_ready;
  logic [$clog2(CompletionDepth+1)-1:0] unused_count;

  em_host_check #(
      .Nodes       (Nodes),
      .MessageBytes(MessageBytes)
  ) u_check (
      .node_i,
      .request_i(caller_i.request),
      .words_i  (data_to_core.whole_words),
      .bad_o    (to_core.request.bad),
      .write_o  (to_core.request.write),
      .request_o(to_core.request.request)
  );

  assign to_core.request.valid = caller_i.request_valid;
  assign to_core.control_ready = control_ready;
  assign to_core.read_ready    = rx_i.read_ready;
  assign to_core.event_valid   = rx_i.event_valid;
  assign to_core.message_event = rx_i.message_event;
  assign timers_to_core.entry  = entry_t'(expired_entry);

  assign caller_o.request_ready = from_core.request_ready;
  assign rx_o.response_ready    = 1'b1;
  assign rx_o.event_ready       = from_core.event_ready;
  assign rx_o.read_valid        = from_core.read_valid;
  assign rx_o.read              = from_core.read;

  em_host_core #(
      .Nodes    (Nodes),
      .X        (X),
      .Entries  (Entries),
      .ReadSlots(ReadSlots)
  ) u_core (
      .clk_i,
      .rst_ni,
      .down_i,
      .core_i    (to_core),
      .core_o    (from_core),
      .data_i    (data_to_core),
      .data_o    (core_to_data),
      .is_open_o (is_open),
      .is_ended_o(is_ended),
      .timed_o   (timed),
      .timers_i  (timers_to_core),
      .timers_o  (core_to_timers)
  );

  em_host_timers #(
      .Entries (Entries),
      .TimeBits(TimeBits)
  ) u_timers (
      .clk_i,
      .rst_ni,
      .timeout_cycles_i,
      .timed_i        (timed),
      .start_i        (core_to_timers.start),
      .start_entry_i  (EntryBits'(core_to_timers.start_entry)),
      .expired_o      (timers_to_core.expired),
      .expired_entry_o(expired_entry),
      .expired_ready_i(core_to_timers.expired_ready)
  );

  em_fifo_sync #(
      .Width($bits(completion_t)),
      .Depth(CompletionDepth)
  ) u_completions (
      .clk_i,
      .rst_ni,
      .valid_i(from_core.completion_valid),
      .ready_o(to_core.completion_ready),
      .data_i (from_core.completion),
      .valid_o(caller_o.completion_valid),
      .ready_i(caller_i.completion_ready),
      .data_o (caller_o.completion),
      .count_o(unused_count)
  );

  // Requests and word of peers, then what refuses a read, then what answers writes.
  assign reply            = refusal_valid ? refusal : rx_i.reply;
  assign control_valid    = from_core.control_valid || refusal_valid
      || (rx_i.reply_valid && !down_i);
  assign refusal_ready    = control_ready && !from_core.control_valid;
  assign rx_o.reply_ready = down_i
      || (control_ready && !from_core.control_valid && !refusal_valid);

  always_comb begin
    control = from_core.control;
    if (!from_core.control_valid) begin
      control = '{sub_type: SubSingle, opcode: reply.id[7] ? OpAcknowledgedWrite : OpRead,
                  node: reply.peer, id: reply.id, code: reply.code, default: '0};
    end
  end

  em_encode_request u_encode_request (
      .clk_i,
      .rst_ni,
      .flush_i       (down_i),
      .valid_i       (control_valid),
      .ready_o       (control_ready),
      .fields_i      (control),
      .memory_o      (control_unit),
      .memory_ready_i(control_unit_ready)
  );

  em_host_data #(
      .Nodes       (Nodes),
      .X           (X),
      .Entries     (Entries),
      .WriteSlots  (WriteSlots),
      .MessageBytes(MessageBytes),
      .ChunkBytes  (ChunkBytes)
  ) u_data (
      .clk_i,
      .rst_ni,
      .node_i,
      .down_i,
      .resetting_o  (resetting),
      .caller_i,
      .write_ready_o(caller_o.write_ready),
      .rx_i,
      .item_ready_o (rx_o.item_ready),
      .core_i       (core_to_data),
      .core_o       (data_to_core),
      .is_open_i    (is_open),
      .is_ended_i   (is_ended),
      .reply_valid_o(refusal_valid),
      .reply_ready_i(refusal_ready),
      .reply_o      (refusal),
      .unit_o       (chunk_unit),
      .unit_ready_i (chunk_unit_ready)
  );

  em_host_mux u_mux (
      .clk_i,
      .rst_ni,
      .flush_i       (down_i),
      .first_i       (control_unit),
      .first_ready_o (control_unit_ready),
      .second_i      (chunk_unit),
      .second_ready_o(chunk_unit_ready),
      .memory_o,
      .memory_ready_i
  );

  assign flushed_o      = flushed_q;
  assign link_down_told = core_to_data.word_ready
      && data_to_core.progress.word.kind == ItemLinkDown;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) flushed_q <= 1'b1;
    else if (resetting) flushed_q <= 1'b1;
    else flushed_q <= down_i && (flushed_q || link_down_told);
  end

endmodule
