/// Moves the blocks of frames from a port's receive clock to the switch's; idles and ordered sets
/// stay behind.
module em_l2_crossing
  import em_pkg::*;
  import em_link_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,
    input logic rx_clk_i,
    input logic rx_rst_ni,

    input  logic   encoded_valid_i,
    input  block_t encoded_i,
    output logic   valid_o,
    output block_t block_o
);

  logic of_frame, starts, unused_ready;
  block_t kept;

  assign starts   = encoded_i.header == SyncControl && has_start(encoded_i.payload[7:0]);
  assign of_frame = encoded_i.header == SyncData || starts || has_terminate(encoded_i.payload[7:0]);

  // An ordered set beside the start is of that link.
  always_comb begin
    kept = encoded_i;
    if (starts && encoded_i.payload[7:0] == BlockOrderedStart) begin
      kept.payload[39:0] = 40'(BlockControlStart);
    end
  end

  em_fifo_async #(
      .Width($bits(block_t)),
      .Depth(8)
  ) u_fifo (
      .write_clk_i  (rx_clk_i),
      .write_rst_ni (rx_rst_ni),
      .write_valid_i(encoded_valid_i && of_frame),
      .write_ready_o(unused_ready),
      .write_data_i (kept),
      .read_clk_i   (clk_i),
      .read_rst_ni  (rst_ni),
      .read_valid_o (valid_o),
      .read_ready_i (1'b1),
      .read_data_o  (block_o)
  );

endmodule
