/// An EDM host: compute side and memory side of one node on one link. docs/internals/rtl-host.md
/// describes it.
module em_host
  import em_pkg::*;
  import em_link_pkg::*;
  import em_host_pkg::*;
  import em_host_ports_pkg::*;
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
    /// Bytes that one grant of the network allows, 128 to 1024.
    parameter int unsigned ChunkBytes   = 256,
    /// Data on its way to memory: a power of two.
    parameter int unsigned StoreBytes   = 4096,
    /// Accesses on their way to memory.
    parameter int unsigned Commands     = 16,
    /// Grants that a port of the switch can leave open.
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
    input  caller_to_host_t caller_i,
    output host_to_caller_t caller_o,

    // Receive clock: data of reads, and what was dropped.
    output logic       m_axis_read_tvalid_o,
    input  logic       m_axis_read_tready_i,
    output read_data_t m_axis_read_tdata_o,
    output dropped_t   dropped_o,

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
  // In the receive clock, what its half drives and reads; in the transmit clock, the other half.
  rx_to_tx_t rx_out, tx_in;
  tx_to_rx_t rx_in, tx_out;

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
      .clk_i           (tx_clk_i),
      .rst_ni          (tx_rst_ni),
      .node_i,
      .timeout_cycles_i,
      .caller_i,
      .caller_o,
      .memory_o,
      .memory_ready_i,
      .down_i          (down_tx),
      .flushed_o       (flushed_tx),
      .rx_i            (tx_in),
      .rx_o            (tx_out)
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
      .clk_i        (rx_clk_i),
      .rst_ni       (rx_rst_ni),
      .down_o       (down_rx),
      .flushed_i    (flushed_rx),
      .read_tvalid_o(m_axis_read_tvalid_o),
      .read_tready_i(m_axis_read_tready_i),
      .read_tdata_o (m_axis_read_tdata_o),
      .tx_o         (rx_out),
      .tx_i         (rx_in),
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
      .valid_i(rx_out.item_valid),
      .ready_o(rx_in.item_ready),
      .item_i (rx_out.item),
      .valid_o(tx_in.item_valid),
      .ready_i(tx_out.item_ready),
      .item_o (tx_in.item)
  );

  em_fifo_async #(
      .Width($bits(event_t))
  ) u_events (
      .write_clk_i  (rx_clk_i),
      .write_rst_ni (rx_rst_ni),
      .write_valid_i(rx_out.event_valid),
      .write_ready_o(rx_in.event_ready),
      .write_data_i (rx_out.message_event),
      .read_clk_i   (tx_clk_i),
      .read_rst_ni  (tx_rst_ni),
      .read_valid_o (tx_in.event_valid),
      .read_ready_i (tx_out.event_ready),
      .read_data_o  (tx_in.message_event)
  );

  em_fifo_async #(
      .Width($bits(reply_t))
  ) u_replies (
      .write_clk_i  (rx_clk_i),
      .write_rst_ni (rx_rst_ni),
      .write_valid_i(rx_out.reply_valid),
      .write_ready_o(rx_in.reply_ready),
      .write_data_i (rx_out.reply),
      .read_clk_i   (tx_clk_i),
      .read_rst_ni  (tx_rst_ni),
      .read_valid_o (tx_in.reply_valid),
      .read_ready_i (tx_out.reply_ready),
      .read_data_o  (tx_in.reply)
  );

  em_fifo_async #(
      .Width($bits(response_word_t))
  ) u_responses (
      .write_clk_i  (rx_clk_i),
      .write_rst_ni (rx_rst_ni),
      .write_valid_i(rx_out.response_valid),
      .write_ready_o(rx_in.response_ready),
      .write_data_i (rx_out.response),
      .read_clk_i   (tx_clk_i),
      .read_rst_ni  (tx_rst_ni),
      .read_valid_o (tx_in.response_valid),
      .read_ready_i (tx_out.response_ready),
      .read_data_o  (tx_in.response)
  );

  em_fifo_async #(
      .Width($bits(read_command_t))
  ) u_reads (
      .write_clk_i  (tx_clk_i),
      .write_rst_ni (tx_rst_ni),
      .write_valid_i(tx_out.read_valid),
      .write_ready_o(tx_in.read_ready),
      .write_data_i (tx_out.read),
      .read_clk_i   (rx_clk_i),
      .read_rst_ni  (rx_rst_ni),
      .read_valid_o (rx_in.read_valid),
      .read_ready_i (rx_out.read_ready),
      .read_data_o  (rx_in.read)
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
