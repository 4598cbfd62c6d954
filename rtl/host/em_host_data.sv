/// The host's outgoing data: writes of its caller and responses of its memory, as grants allow.
module em_host_data
  import em_pkg::*;
  import em_link_pkg::*;
  import em_host_pkg::*;
  import em_host_ports_pkg::*;
#(
    parameter int unsigned Nodes        = 4,
    parameter int unsigned X            = 3,
    parameter int unsigned Entries      = 16,
    parameter int unsigned WriteSlots   = 4,
    parameter int unsigned MessageBytes = 1024,
    parameter int unsigned ChunkBytes   = 256
) (
    input logic  clk_i,
    input logic  rst_ni,
    input node_t node_i,
    input logic  down_i,
    /// Since the reset: nothing may come yet.
    output logic resetting_o,

    /// Of it, write data.
    input  caller_to_host_t caller_i,
    output logic            write_ready_o,
    /// Of it, items and responses, of which one is taken in every cycle.
    input  rx_to_tx_t       rx_i,
    output logic            item_ready_o,

    input  core_to_data_t      core_i,
    output data_to_core_t      core_o,
    input  logic [Entries-1:0] is_open_i,
    input  logic [Entries-1:0] is_ended_i,
    output logic               reply_valid_o,
    input  logic               reply_ready_i,
    output reply_t             reply_o,

    output tx_memory_t unit_o,
    input  logic       unit_ready_i
);

  localparam int unsigned SlotBits = (WriteSlots > 1) ? $clog2(WriteSlots) : 1;
  localparam int unsigned WordBits = $clog2(MessageBytes / 8);

  logic [SlotBits-1:0] slot;
  logic [63:0] write_data, response_data;
  logic [$clog2(Nodes*X)-1:0] ask_row, read_row;
  arrived_t arrived;
  chunk_to_encoder_t chunk;
  encoder_to_chunk_t encoder;

  assign core_o.whole_slot = slot_t'(slot);
  assign encoder.started   = unit_o.valid && unit_ready_i;

  em_host_write_data #(
      .WriteSlots  (WriteSlots),
      .MessageBytes(MessageBytes)
  ) u_write_data (
      .clk_i,
      .rst_ni,
      .valid_i      (caller_i.write_valid),
      .ready_o      (write_ready_o),
      .data_i       (caller_i.write),
      .whole_o      (core_o.whole),
      .whole_slot_o (slot),
      .whole_words_o(core_o.whole_words),
      .take_i       (core_i.take),
      .free_i       (core_i.free),
      .free_slot_i  (SlotBits'(core_i.free_slot)),
      .hold_i       (!encoder.fields_ready),
      .hold_slot_i  (SlotBits'(chunk.read_slot)),
      .read_i       (chunk.read),
      .read_slot_i  (SlotBits'(chunk.read_slot)),
      .read_word_i  (WordBits'(chunk.read_word)),
      .read_data_o  (write_data)
  );

  em_host_chunk #(
      .Nodes     (Nodes),
      .X         (X),
      .Entries   (Entries),
      .ChunkBytes(ChunkBytes)
  ) u_chunk (
      .clk_i,
      .rst_ni,
      .node_i,
      .down_i,
      .item_valid_i (rx_i.item_valid),
      .item_ready_o,
      .item_i       (rx_i.item),
      .core_i,
      .is_open_i,
      .is_ended_i,
      .progress_o   (core_o.progress),
      .ask_row_o    (ask_row),
      .arrived_i    (arrived),
      .reply_valid_o,
      .reply_ready_i,
      .reply_o,
      .encoder_o    (chunk),
      .encoder_i    (encoder),
      .read_row_o   (read_row)
  );

  em_host_responses #(
      .Nodes       (Nodes),
      .X           (X),
      .MessageBytes(MessageBytes)
  ) u_responses (
      .clk_i,
      .rst_ni,
      .resetting_o,
      .valid_i    (rx_i.response_valid),
      .word_i     (rx_i.response),
      .ask_row_i  (ask_row),
      .arrived_o  (arrived),
      .read_i     (chunk.read),
      .read_row_i (read_row),
      .read_word_i(chunk.read_word),
      .read_data_o(response_data)
  );

  em_encode_chunk u_encode_chunk (
      .clk_i,
      .rst_ni,
      .flush_i       (down_i),
      .valid_i       (chunk.fields_valid),
      .ready_o       (encoder.fields_ready),
      .fields_i      (chunk.fields),
      .data_i        (chunk.is_response ? response_data : write_data),
      .data_ready_o  (encoder.data_ready),
      .memory_o      (unit_o),
      .memory_ready_i(unit_ready_i)
  );

endmodule
