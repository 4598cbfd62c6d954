/// The half of a host in the transmit clock: requests in, blocks out, completions.
module em_host_tx
  import em_pkg::*;
  import em_link_pkg::*;
  import em_host_pkg::*;
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

    input  logic        request_tvalid_i,
    output logic        request_tready_o,
    input  request_t    request_tdata_i,
    input  logic        write_tvalid_i,
    output logic        write_tready_o,
    input  write_data_t write_tdata_i,
    output logic        completion_tvalid_o,
    input  logic        completion_tready_i,
    output completion_t completion_tdata_o,

    output tx_memory_t memory_o,
    input  logic       memory_ready_i,

    /// The link is down: nothing goes out. All of before has ended once `flushed_o` is high, which
    /// it is until the link is up again; and from the reset on until anything may come.
    input  logic down_i,
    output logic flushed_o,

    input  logic           item_valid_i,
    output logic           item_ready_o,
    input  item_t          item_i,
    input  logic           event_valid_i,
    output logic           event_ready_o,
    input  event_t         event_i,
    input  logic           reply_valid_i,
    output logic           reply_ready_o,
    input  reply_t         reply_i,
    /// Taken in every cycle.
    input  logic           response_valid_i,
    input  response_word_t response_i,
    output logic           read_valid_o,
    input  logic           read_ready_i,
    output read_command_t  read_o
);

  localparam int unsigned EntryBits = $clog2(Entries);
  localparam int unsigned CompletionDepth = 4;

  request_t request;
  logic request_bad, request_write;
  logic whole, data_take, data_free;
  slot_t free_slot, whole_slot;
  bytes_t whole_words;
  completion_t completion;
  logic completion_valid, completion_ready;
  logic core_valid, core_ready, refusal_valid, refusal_ready, control_valid, control_ready;
  control_fields_t core_control, control;
  reply_t refusal, reply;
  logic open, sent_valid, sent_ready, word_valid, word_ready, start, expired, expired_ready;
  opened_t opened;
  sent_t sent;
  word_t word;
  entry_t start_entry;
  logic [EntryBits-1:0] expired_entry;
  logic [Entries-1:0] is_open, is_ended, timed;
  logic flushed_q, resetting;
  tx_memory_t control_unit, chunk_unit;
  logic control_unit_ready, chunk_unit_ready;
  logic [$clog2(CompletionDepth+1)-1:0] unused_count;

  em_host_check #(
      .Nodes       (Nodes),
      .MessageBytes(MessageBytes)
  ) u_check (
      .node_i,
      .request_i(request_tdata_i),
      .words_i  (whole_words),
      .bad_o    (request_bad),
      .write_o  (request_write),
      .request_o(request)
  );

  em_host_core #(
      .Nodes    (Nodes),
      .X        (X),
      .Entries  (Entries),
      .ReadSlots(ReadSlots)
  ) u_core (
      .clk_i,
      .rst_ni,
      .down_i,
      .request_valid_i   (request_tvalid_i),
      .request_ready_o   (request_tready_o),
      .request_i         (request),
      .request_bad_i     (request_bad),
      .request_write_i   (request_write),
      .data_whole_i      (whole),
      .data_slot_i       (whole_slot),
      .data_take_o       (data_take),
      .data_free_o       (data_free),
      .data_free_slot_o  (free_slot),
      .completion_valid_o(completion_valid),
      .completion_ready_i(completion_ready),
      .completion_o      (completion),
      .control_valid_o   (core_valid),
      .control_ready_i   (core_ready),
      .control_o         (core_control),
      .read_valid_o,
      .read_ready_i,
      .read_o,
      .event_valid_i,
      .event_ready_o,
      .event_i,
      .open_o            (open),
      .opened_o          (opened),
      .is_open_o         (is_open),
      .is_ended_o        (is_ended),
      .sent_valid_i      (sent_valid),
      .sent_ready_o      (sent_ready),
      .sent_i            (sent),
      .word_valid_i      (word_valid),
      .word_ready_o      (word_ready),
      .word_i            (word),
      .timed_o           (timed),
      .start_o           (start),
      .start_entry_o     (start_entry),
      .expired_i         (expired),
      .expired_ready_o   (expired_ready),
      .expired_entry_i   (entry_t'(expired_entry))
  );

  em_host_timers #(
      .Entries (Entries),
      .TimeBits(TimeBits)
  ) u_timers (
      .clk_i,
      .rst_ni,
      .timeout_cycles_i,
      .timed_i        (timed),
      .start_i        (start),
      .start_entry_i  (EntryBits'(start_entry)),
      .expired_o      (expired),
      .expired_entry_o(expired_entry),
      .expired_ready_i(expired_ready)
  );

  em_fifo_sync #(
      .Width($bits(completion_t)),
      .Depth(CompletionDepth)
  ) u_completions (
      .clk_i,
      .rst_ni,
      .valid_i(completion_valid),
      .ready_o(completion_ready),
      .data_i (completion),
      .valid_o(completion_tvalid_o),
      .ready_i(completion_tready_i),
      .data_o (completion_tdata_o),
      .count_o(unused_count)
  );

  // Requests and word of peers, then what refuses a read, then what answers writes.
  assign reply         = refusal_valid ? refusal : reply_i;
  assign control_valid = core_valid || refusal_valid || (reply_valid_i && !down_i);
  assign core_ready    = control_ready;
  assign refusal_ready = control_ready && !core_valid;
  assign reply_ready_o = down_i || (control_ready && !core_valid && !refusal_valid);

  always_comb begin
    control = core_control;
    if (!core_valid) begin
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
      .resetting_o (resetting),
      .write_tvalid_i,
      .write_tready_o,
      .write_tdata_i,
      .whole_o      (whole),
      .whole_slot_o (whole_slot),
      .whole_words_o(whole_words),
      .take_i       (data_take),
      .free_i       (data_free),
      .free_slot_i  (free_slot),
      .item_valid_i,
      .item_ready_o,
      .item_i,
      .open_i       (open),
      .opened_i     (opened),
      .is_open_i    (is_open),
      .is_ended_i   (is_ended),
      .sent_valid_o (sent_valid),
      .sent_ready_i (sent_ready),
      .sent_o       (sent),
      .word_valid_o (word_valid),
      .word_ready_i (word_ready),
      .word_o       (word),
      .reply_valid_o(refusal_valid),
      .reply_ready_i(refusal_ready),
      .reply_o      (refusal),
      .response_valid_i,
      .response_i,
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

  assign flushed_o = flushed_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) flushed_q <= 1'b1;
    else if (resetting) flushed_q <= 1'b1;
    else flushed_q <= down_i && (flushed_q || (word_ready && word.kind == ItemLinkDown));
  end

endmodule
