/// The grant queue: what a host has to answer, in the order of arrival, from the receive to the
/// transmit clock. It takes four cycles while nothing waits; entries beyond the crossing's room
/// wait before it.
module em_host_grants
  import em_host_pkg::*;
#(
    /// Entries that wait before the crossing.
    parameter int unsigned Depth      = 64,
    /// Entries that cross: a power of two; 8 keep full rate.
    parameter int unsigned CrossDepth = 8
) (
    input logic rx_clk_i,
    input logic rx_rst_ni,
    input logic tx_clk_i,
    input logic tx_rst_ni,

    input  logic  valid_i,
    output logic  ready_o,
    input  item_t item_i,

    output logic  valid_o,
    input  logic  ready_i,
    output item_t item_o
);

  logic waits, wait_ready, wait_push, wait_pop, cross_valid, cross_ready;
  item_t waiting, crossing;
  logic [$clog2(Depth+1)-1:0] unused_count;

  // Past those that wait only if there are none.
  assign wait_push   = valid_i && (waits || !cross_ready);
  assign wait_pop    = waits && cross_ready;
  assign cross_valid = waits || valid_i;
  assign crossing    = waits ? waiting : item_i;
  assign ready_o     = wait_ready;

  em_fifo_sync #(
      .Width($bits(item_t)),
      .Depth(Depth)
  ) u_waiting (
      .clk_i  (rx_clk_i),
      .rst_ni (rx_rst_ni),
      .valid_i(wait_push && ready_o),
      .ready_o(wait_ready),
      .data_i (item_i),
      .valid_o(waits),
      .ready_i(wait_pop),
      .data_o (waiting),
      .count_o(unused_count)
  );

  em_fifo_async #(
      .Width($bits(item_t)),
      .Depth(CrossDepth)
  ) u_crossing (
      .write_clk_i  (rx_clk_i),
      .write_rst_ni (rx_rst_ni),
      .write_valid_i(cross_valid),
      .write_ready_o(cross_ready),
      .write_data_i (crossing),
      .read_clk_i   (tx_clk_i),
      .read_rst_ni  (tx_rst_ni),
      .read_valid_o (valid_o),
      .read_ready_i (ready_i),
      .read_data_o  (item_o)
  );

endmodule
