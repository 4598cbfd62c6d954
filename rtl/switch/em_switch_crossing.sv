/// Moves blocks from a port's receive clock to the switch's. A block takes three cycles at equal
/// clocks, and the register behind is the fourth. The link's state comes no later than the first
/// block after it started, and no earlier than the last one before it failed.
module em_switch_crossing
  import em_link_pkg::*;
  import em_switch_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,
    input logic rx_clk_i,
    input logic rx_rst_ni,

    input  logic       link_up_i,
    input  rx_memory_t memory_i,
    output logic       up_o,
    output logic       valid_o,
    output item_t      item_o
);

  logic identified_valid, unused_ready, up, up_q;
  item_t identified;

  em_switch_identify u_identify (
      .clk_i  (rx_clk_i),
      .rst_ni (rx_rst_ni),
      .memory_i,
      .valid_o(identified_valid),
      .item_o (identified)
  );

  // The switch takes a block a cycle, so that it fills only with what the clocks differ.
  em_fifo_async #(
      .Width         ($bits(item_t)),
      .Depth         (8),
      .OutputRegister(1'b0)
  ) u_fifo (
      .write_clk_i  (rx_clk_i),
      .write_rst_ni (rx_rst_ni),
      .write_valid_i(identified_valid),
      .write_ready_o(unused_ready),
      .write_data_i (identified),
      .read_clk_i   (clk_i),
      .read_rst_ni  (rst_ni),
      .read_valid_o (valid_o),
      .read_ready_i (1'b1),
      .read_data_o  (item_o)
  );

  em_sync #(
      .Width     (1),
      .ResetValue(1'b1)
  ) u_up (
      .clk_i,
      .rst_ni,
      .data_i(link_up_i),
      .data_o(up)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) up_q <= 1'b1;
    else up_q <= up;
  end
  assign up_o = up_q;

endmodule
