/// The half of a host in the receive clock: blocks in, data to the caller, the memory side.
module em_host_rx
  import em_pkg::*;
  import em_link_pkg::*;
  import em_host_pkg::*;
  import em_host_ports_pkg::*;
#(
    parameter int unsigned Nodes        = 4,
    parameter int unsigned X            = 3,
    parameter int unsigned Entries      = 16,
    parameter int unsigned ReadSlots    = 4,
    parameter int unsigned MessageBytes = 1024,
    parameter int unsigned ChunkBytes   = 256,
    parameter int unsigned StoreBytes   = 4096,
    parameter int unsigned Commands     = 16
) (
    input logic        clk_i,
    input logic        rst_ni,
    input node_t       node_i,
    input logic [63:0] memory_bytes_i,

    input  rx_memory_t memory_i,
    input  logic       up_i,
    output logic       fail_o,
    output logic       settled_o,
    output logic       down_o,
    input  logic       flushed_i,

    output logic       read_tvalid_o,
    input  logic       read_tready_i,
    output read_data_t read_tdata_o,

    output rx_to_tx_t tx_o,
    input  tx_to_rx_t tx_i,
    /// Pulses for counters: nothing is silent.
    output dropped_t  dropped_o,

    output em_axi_pkg::request_t  m_axi_o,
    input  em_axi_pkg::response_t m_axi_i
);

  localparam int unsigned ReplyDepth = 16;

  logic enable, tell, forget, forgetting, quiet, memory_quiet, reads_quiet;
  logic response_word, write_word, ends, arrived, known, fits;
  logic [63:0] word;
  node_t peer;
  row_t row;
  arrival_t arrival;
  item_t item, item_q;
  logic item_valid, item_q_valid;
  logic command_valid, command_ready, memory_reply_valid, peer_reply_valid, reply_ready;
  command_t command;
  reply_t memory_reply, peer_reply;
  logic [$clog2(ReplyDepth+1)-1:0] reply_count;
  logic read_event_valid, status_valid, status_waits, status_ready, end_lost;
  event_t read_event, status, waiting_status;
  logic [$clog2(Entries+1)-1:0] unused_count;

  em_host_link u_link (
      .clk_i,
      .rst_ni,
      .up_i,
      .lost_i      (dropped_o.grants_lost),
      .fail_o,
      .enable_o    (enable),
      .down_o,
      .tell_o      (tell),
      .told_i      (tx_i.item_ready && !item_q_valid),
      .forget_o    (forget),
      .forgetting_i(forgetting || forget),
      .quiet_i     (quiet),
      .flushed_i,
      .settled_o
  );

  em_host_parse u_parse (
      .clk_i,
      .rst_ni,
      .enable_i       (enable),
      .memory_i,
      .response_word_o(response_word),
      .write_word_o   (write_word),
      .word_o         (word),
      .ends_o         (ends),
      .peer_o         (peer),
      .row_o          (row),
      .arrived_o      (arrived),
      .arrival_o      (arrival)
  );

  em_host_peers #(
      .Nodes       (Nodes),
      .X           (X),
      .MessageBytes(MessageBytes),
      .ChunkBytes  (ChunkBytes)
  ) u_peers (
      .clk_i,
      .rst_ni,
      .node_i,
      .forget_i       (forget),
      .forgetting_o   (forgetting),
      .ends_i         (ends),
      .peer_i         (peer),
      .arrived_i      (arrived),
      .arrival_i      (arrival),
      .fits_i         (fits),
      .command_ready_i(command_ready),
      .known_o        (known),
      .item_valid_o   (item_valid),
      .item_o         (item),
      .command_valid_o(command_valid),
      .command_o      (command),
      .reply_valid_o  (peer_reply_valid),
      .reply_o        (peer_reply),
      .duplicate_o    (dropped_o.duplicate),
      .dropped_o      (dropped_o.write_dropped)
  );

  em_host_reads #(
      .Nodes       (Nodes),
      .X           (X),
      .ReadSlots   (ReadSlots),
      .MessageBytes(MessageBytes),
      .ChunkBytes  (ChunkBytes)
  ) u_reads (
      .clk_i,
      .rst_ni,
      .flush_i        (!enable),
      .quiet_o        (reads_quiet),
      .command_valid_i(tx_i.read_valid),
      .command_ready_o(tx_o.read_ready),
      .command_i      (tx_i.read),
      .word_i         (response_word),
      .data_i         (word),
      .ends_i         (ends),
      .peer_i         (peer),
      .row_i          (row),
      .arrived_i      (arrived),
      .arrival_i      (arrival),
      .known_i        (known),
      .read_tvalid_o,
      .read_tready_i,
      .read_tdata_o,
      .event_valid_o  (read_event_valid),
      .event_ready_i  (tx_i.event_ready),
      .event_o        (read_event),
      .lost_o         (end_lost)
  );

  em_host_memory #(
      .Nodes     (Nodes),
      .StoreBytes(StoreBytes),
      .Commands  (Commands)
  ) u_memory (
      .word_i          (write_word),
      .data_i          (word),
      .arrived_i       (arrived),
      .is_write_i      (arrival.kind == ArriveWrite),
      .fits_o          (fits),
      .command_valid_i (command_valid),
      .command_ready_o (command_ready),
      .command_i       (command),
      .reply_valid_o   (memory_reply_valid),
      .reply_ready_i   (reply_ready && !peer_reply_valid),
      .reply_o         (memory_reply),
      .lost_o          (dropped_o.posted_lost),
      .quiet_o         (memory_quiet),
      .response_valid_o(tx_o.response_valid),
      .response_ready_i(tx_i.response_ready),
      .response_o      (tx_o.response),
      .*
  );

  // ---- what has to be answered, one edge after its peer was known ----

  assign tx_o.item_valid       = item_q_valid || tell;
  assign dropped_o.grants_lost = item_q_valid && !tx_i.item_ready;

  always_comb begin
    tx_o.item = item_q;
    if (!item_q_valid) begin
      tx_o.item = '{kind: ItemLinkDown, peer: '0, id: '0, bytes: '0, phase: '0};
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) item_q_valid <= 1'b0;
    else item_q_valid <= item_valid;
  end
  always_ff @(posedge clk_i) item_q <= item;

  // ---- statuses to send: those of memory can wait ----

  em_fifo_sync #(
      .Width($bits(reply_t)),
      .Depth(ReplyDepth)
  ) u_replies (
      .clk_i,
      .rst_ni,
      .valid_i(peer_reply_valid || memory_reply_valid),
      .ready_o(reply_ready),
      .data_i (peer_reply_valid ? peer_reply : memory_reply),
      .valid_o(tx_o.reply_valid),
      .ready_i(tx_i.reply_ready),
      .data_o (tx_o.reply),
      .count_o(reply_count)
  );

  assign dropped_o.reply_lost = (peer_reply_valid && !reply_ready)
      || (status_valid && !status_ready) || end_lost;
  assign quiet                = memory_quiet && reads_quiet && reply_count == '0;

  // ---- statuses that came: as many as writes can be open ----

  assign status_valid = arrived && known && arrival.kind == ArriveStatus && arrival.id[IdBits-1];
  assign status       = '{
      peer: arrival.peer, id: arrival.id, ends: 1'b1, closes: 1'b1,
      remote: arrival.code != StatusOk, code: arrival.code};

  em_fifo_sync #(
      .Width($bits(event_t)),
      .Depth(Entries)
  ) u_statuses (
      .clk_i,
      .rst_ni,
      .valid_i(status_valid),
      .ready_o(status_ready),
      .data_i (status),
      .valid_o(status_waits),
      .ready_i(tx_i.event_ready && !read_event_valid),
      .data_o (waiting_status),
      .count_o(unused_count)
  );

  assign tx_o.event_valid   = read_event_valid || status_waits;
  assign tx_o.message_event = read_event_valid ? read_event : waiting_status;

endmodule
