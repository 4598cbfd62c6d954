/// An EDM host: compute side and memory side of one node on one link. docs/internals/rtl-host.md
/// describes it.
module em_host
  import em_pkg::*;
  import em_link_pkg::*;
  import em_host_pkg::*;
#(
    /// Nodes of the network, this one included: 2 to 512.
    parameter int unsigned Nodes        = 4,
    /// Notifications, and reads, that may be active for one destination: 1 to 8.
    parameter int unsigned X            = 3,
    /// Requests between their handshake and their completion: a power of two, 256 at most.
    parameter int unsigned Entries      = 16,
    /// Writes whose data waits, and reads that are under way.
    parameter int unsigned WriteSlots   = 4,
    parameter int unsigned ReadSlots    = 4,
    /// The longest message: a multiple of 8, below 64 KiB.
    parameter int unsigned MessageBytes = 1024,
    /// Of the network: what one grant allows, 128 to 1024.
    parameter int unsigned ChunkBytes   = 256,
    /// Data on its way to memory: a power of two.
    parameter int unsigned StoreBytes   = 4096,
    /// Accesses on their way to memory.
    parameter int unsigned Commands     = 16,
    /// Of the switch: grants that a port can leave open.
    parameter int unsigned Circuits     = 64,
    /// What waits to be answered: with the eight that cross, a port's grants and two words of each
    /// peer. More would fail the link.
    parameter int unsigned GrantDepth   = Circuits + 2 * Nodes - 8,
    parameter int unsigned TimeBits     = 32
) (
    input logic tx_clk_i,
    input logic tx_rst_ni,
    /// Goes on while the link is down. Both resets must be asserted together.
    input logic rx_clk_i,
    input logic rx_rst_ni,

    // Do not change.
    input node_t               node_i,
    input logic [TimeBits-2:0] timeout_cycles_i,
    input logic [63:0]         memory_bytes_i,

    // The edge of the link. It starts a failed link anew only while `settled_o` is high, and fails
    // one that is up while `fail_o` is: more came than can be answered.
    input  rx_memory_t memory_i,
    input  logic       up_i,
    output logic       fail_o,
    output logic       settled_o,
    output tx_memory_t memory_o,
    input  logic       memory_ready_i,

    // Transmit clock.
    input  logic        s_axis_request_tvalid_i,
    output logic        s_axis_request_tready_o,
    input  request_t    s_axis_request_tdata_i,
    input  logic        s_axis_write_tvalid_i,
    output logic        s_axis_write_tready_o,
    input  write_data_t s_axis_write_tdata_i,
    output logic        m_axis_completion_tvalid_o,
    input  logic        m_axis_completion_tready_i,
    output completion_t m_axis_completion_tdata_o,

    // Receive clock.
    output logic        m_axis_read_tvalid_o,
    input  logic        m_axis_read_tready_i,
    output read_data_t  m_axis_read_tdata_o,
    /// A message had no effect: repeated; a chunk without room or place; a posted write that memory
    /// refused; more grants, or statuses and ends of reads, than can be kept.
    output logic [4:0]  dropped_o,

    // Memory, receive clock: 64 bits, INCR.
    output em_axi_pkg::request_t  m_axi_o,
    input  em_axi_pkg::response_t m_axi_i
);

  localparam int unsigned CrossDepth = 8;

  if (GrantDepth + CrossDepth < Circuits + 2 * (Nodes - 1)) begin : gen_check_grants
    $error("GrantDepth must be Circuits + 2 * Nodes - 10 at least");
  end
  if (X < 1 || X > RowsMax) begin : gen_check_rows
    $error("X must be 1 to 8");
  end

  logic down_rx, down_tx, flushed_rx, flushed_tx;
  logic item_rx_valid, item_rx_ready, item_tx_valid, item_tx_ready;
  item_t item_rx, item_tx;
  logic event_rx_valid, event_rx_ready, event_tx_valid, event_tx_ready;
  event_t event_rx, event_tx;
  logic reply_rx_valid, reply_rx_ready, reply_tx_valid, reply_tx_ready;
  reply_t reply_rx, reply_tx;
  logic response_rx_valid, response_rx_ready, response_tx_valid;
  response_word_t response_rx, response_tx;
  logic read_tx_valid, read_tx_ready, read_rx_valid, read_rx_ready;
  read_command_t read_tx, read_rx;

  em_host_tx #(
      .Nodes       (Nodes),
      .X           (X),
      .Entries     (Entries),
      .WriteSlots  (WriteSlots),
      .ReadSlots   (ReadSlots),
      .MessageBytes(MessageBytes),
      .ChunkBytes  (ChunkBytes),
      .TimeBits    (TimeBits)
  ) u_tx (
      .clk_i              (tx_clk_i),
      .rst_ni             (tx_rst_ni),
      .node_i,
      .timeout_cycles_i,
      .request_tvalid_i   (s_axis_request_tvalid_i),
      .request_tready_o   (s_axis_request_tready_o),
      .request_tdata_i    (s_axis_request_tdata_i),
      .write_tvalid_i     (s_axis_write_tvalid_i),
      .write_tready_o     (s_axis_write_tready_o),
      .write_tdata_i      (s_axis_write_tdata_i),
      .completion_tvalid_o(m_axis_completion_tvalid_o),
      .completion_tready_i(m_axis_completion_tready_i),
      .completion_tdata_o (m_axis_completion_tdata_o),
      .memory_o,
      .memory_ready_i,
      .down_i             (down_tx),
      .flushed_o          (flushed_tx),
      .item_valid_i       (item_tx_valid),
      .item_ready_o       (item_tx_ready),
      .item_i             (item_tx),
      .event_valid_i      (event_tx_valid),
      .event_ready_o      (event_tx_ready),
      .event_i            (event_tx),
      .reply_valid_i      (reply_tx_valid),
      .reply_ready_o      (reply_tx_ready),
      .reply_i            (reply_tx),
      .response_valid_i   (response_tx_valid),
      .response_i         (response_tx),
      .read_valid_o       (read_tx_valid),
      .read_ready_i       (read_tx_ready),
      .read_o             (read_tx)
  );

  em_host_rx #(
      .Nodes       (Nodes),
      .X           (X),
      .Entries     (Entries),
      .ReadSlots   (ReadSlots),
      .MessageBytes(MessageBytes),
      .ChunkBytes  (ChunkBytes),
      .StoreBytes  (StoreBytes),
      .Commands    (Commands)
  ) u_rx (
      .clk_i           (rx_clk_i),
      .rst_ni          (rx_rst_ni),
      .down_o          (down_rx),
      .flushed_i       (flushed_rx),
      .read_tvalid_o   (m_axis_read_tvalid_o),
      .read_tready_i   (m_axis_read_tready_i),
      .read_tdata_o    (m_axis_read_tdata_o),
      .item_valid_o    (item_rx_valid),
      .item_ready_i    (item_rx_ready),
      .item_o          (item_rx),
      .event_valid_o   (event_rx_valid),
      .event_ready_i   (event_rx_ready),
      .event_o         (event_rx),
      .reply_valid_o   (reply_rx_valid),
      .reply_ready_i   (reply_rx_ready),
      .reply_o         (reply_rx),
      .response_valid_o(response_rx_valid),
      .response_ready_i(response_rx_ready),
      .response_o      (response_rx),
      .read_valid_i    (read_rx_valid),
      .read_ready_o    (read_rx_ready),
      .read_i          (read_rx),
      .duplicate_o     (dropped_o[0]),
      .write_dropped_o (dropped_o[1]),
      .posted_lost_o   (dropped_o[2]),
      .grants_lost_o   (dropped_o[3]),
      .reply_lost_o    (dropped_o[4]),
      .*
  );

  em_host_grants #(
      .Depth     (GrantDepth),
      .CrossDepth(CrossDepth)
  ) u_grants (
      .rx_clk_i,
      .rx_rst_ni,
      .tx_clk_i,
      .tx_rst_ni,
      .valid_i(item_rx_valid),
      .ready_o(item_rx_ready),
      .item_i (item_rx),
      .valid_o(item_tx_valid),
      .ready_i(item_tx_ready),
      .item_o (item_tx)
  );

  em_fifo_async #(
      .Width($bits(event_t))
  ) u_events (
      .write_clk_i  (rx_clk_i),
      .write_rst_ni (rx_rst_ni),
      .write_valid_i(event_rx_valid),
      .write_ready_o(event_rx_ready),
      .write_data_i (event_rx),
      .read_clk_i   (tx_clk_i),
      .read_rst_ni  (tx_rst_ni),
      .read_valid_o (event_tx_valid),
      .read_ready_i (event_tx_ready),
      .read_data_o  (event_tx)
  );

  em_fifo_async #(
      .Width($bits(reply_t))
  ) u_replies (
      .write_clk_i  (rx_clk_i),
      .write_rst_ni (rx_rst_ni),
      .write_valid_i(reply_rx_valid),
      .write_ready_o(reply_rx_ready),
      .write_data_i (reply_rx),
      .read_clk_i   (tx_clk_i),
      .read_rst_ni  (tx_rst_ni),
      .read_valid_o (reply_tx_valid),
      .read_ready_i (reply_tx_ready),
      .read_data_o  (reply_tx)
  );

  em_fifo_async #(
      .Width($bits(response_word_t))
  ) u_responses (
      .write_clk_i  (rx_clk_i),
      .write_rst_ni (rx_rst_ni),
      .write_valid_i(response_rx_valid),
      .write_ready_o(response_rx_ready),
      .write_data_i (response_rx),
      .read_clk_i   (tx_clk_i),
      .read_rst_ni  (tx_rst_ni),
      .read_valid_o (response_tx_valid),
      .read_ready_i (1'b1),
      .read_data_o  (response_tx)
  );

  em_fifo_async #(
      .Width($bits(read_command_t))
  ) u_reads (
      .write_clk_i  (tx_clk_i),
      .write_rst_ni (tx_rst_ni),
      .write_valid_i(read_tx_valid),
      .write_ready_o(read_tx_ready),
      .write_data_i (read_tx),
      .read_clk_i   (rx_clk_i),
      .read_rst_ni  (rx_rst_ni),
      .read_valid_o (read_rx_valid),
      .read_ready_i (read_rx_ready),
      .read_data_o  (read_rx)
  );

  em_sync u_down (
      .clk_i (tx_clk_i),
      .rst_ni(tx_rst_ni),
      .data_i(down_rx),
      .data_o(down_tx)
  );

  em_sync u_flushed (
      .clk_i (rx_clk_i),
      .rst_ni(rx_rst_ni),
      .data_i(flushed_tx),
      .data_o(flushed_rx)
  );

endmodule
