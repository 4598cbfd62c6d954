/// The host's outgoing data: writes of its caller and responses of its memory, as grants allow.
module em_host_data
  import em_pkg::*;
  import em_link_pkg::*;
  import em_host_pkg::*;
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

    input  logic        write_tvalid_i,
    output logic        write_tready_o,
    input  write_data_t write_tdata_i,
    // The oldest write whose data is all there.
    output logic        whole_o,
    output slot_t       whole_slot_o,
    output bytes_t      whole_words_o,
    input  logic        take_i,
    input  logic        free_i,
    input  slot_t       free_slot_i,

    // As em_host_chunk has them.
    input  logic               item_valid_i,
    output logic               item_ready_o,
    input  item_t              item_i,
    input  logic               open_i,
    input  opened_t            opened_i,
    input  logic [Entries-1:0] is_open_i,
    input  logic [Entries-1:0] is_ended_i,
    output logic               sent_valid_o,
    input  logic               sent_ready_i,
    output sent_t              sent_o,
    output logic               word_valid_o,
    input  logic               word_ready_i,
    output word_t              word_o,
    output logic               reply_valid_o,
    input  logic               reply_ready_i,
    output reply_t             reply_o,

    /// Taken in every cycle.
    input  logic           response_valid_i,
    input  response_word_t response_i,

    output tx_memory_t unit_o,
    input  logic       unit_ready_i
);

  localparam int unsigned SlotBits = (WriteSlots > 1) ? $clog2(WriteSlots) : 1;
  localparam int unsigned WordBits = $clog2(MessageBytes / 8);

  logic [SlotBits-1:0] slot;
  slot_t read_slot;
  bytes_t read_word;
  logic [63:0] write_data, response_data;
  logic [$clog2(Nodes*X)-1:0] ask_row, read_row;
  arrived_t arrived;
  chunk_fields_t fields;
  logic fields_valid, fields_ready, data_ready, data_read, is_response;

  assign whole_slot_o = slot_t'(slot);

  em_host_write_data #(
      .WriteSlots  (WriteSlots),
      .MessageBytes(MessageBytes)
  ) u_write_data (
      .clk_i,
      .rst_ni,
      .valid_i      (write_tvalid_i),
      .ready_o      (write_tready_o),
      .data_i       (write_tdata_i),
      .whole_o,
      .whole_slot_o (slot),
      .whole_words_o,
      .take_i,
      .free_i,
      .free_slot_i  (SlotBits'(free_slot_i)),
      .hold_i       (!fields_ready),
      .hold_slot_i  (SlotBits'(read_slot)),
      .read_i       (data_read),
      .read_slot_i  (SlotBits'(read_slot)),
      .read_word_i  (WordBits'(read_word)),
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
      .item_valid_i,
      .item_ready_o,
      .item_i,
      .open_i,
      .opened_i,
      .is_open_i,
      .is_ended_i,
      .sent_valid_o,
      .sent_ready_i,
      .sent_o,
      .word_valid_o,
      .word_ready_i,
      .word_o,
      .ask_row_o     (ask_row),
      .arrived_i     (arrived),
      .reply_valid_o,
      .reply_ready_i,
      .reply_o,
      .fields_valid_o(fields_valid),
      .fields_ready_i(fields_ready),
      .fields_o      (fields),
      .started_i     (unit_o.valid && unit_ready_i),
      .data_ready_i  (data_ready),
      .read_o        (data_read),
      .read_word_o   (read_word),
      .read_slot_o   (read_slot),
      .read_row_o    (read_row),
      .response_o    (is_response)
  );

  em_host_responses #(
      .Nodes       (Nodes),
      .X           (X),
      .MessageBytes(MessageBytes)
  ) u_responses (
      .clk_i,
      .rst_ni,
      .resetting_o,
      .valid_i    (response_valid_i),
      .word_i     (response_i),
      .ask_row_i  (ask_row),
      .arrived_o  (arrived),
      .read_i     (data_read),
      .read_row_i (read_row),
      .read_word_i(read_word),
      .read_data_o(response_data)
  );

  em_encode_chunk u_encode_chunk (
      .clk_i,
      .rst_ni,
      .flush_i       (down_i),
      .valid_i       (fields_valid),
      .ready_o       (fields_ready),
      .fields_i      (fields),
      .data_i        (is_response ? response_data : write_data),
      .data_ready_o  (data_ready),
      .memory_o      (unit_o),
      .memory_ready_i(unit_ready_i)
  );


endmodule
