/// em_host_grants between any two clocks: entries are numbered as they are taken, and must come out
/// with the numbers 0, 1, 2 and so on, whether they waited before the crossing or not. What was
/// taken and has not come out is inside, and fits.
module em_host_grants_proof
  import em_host_pkg::*;
#(
    parameter int unsigned Width      = 4,
    parameter int unsigned Depth      = 1,
    parameter int unsigned CrossDepth = 4
) (
    input logic rx_clk_i,
    input logic valid_i,
    input logic tx_clk_i,
    input logic ready_i
);

  // Both sides begin in reset, and each leaves it with its first edge.
  logic rx_rst_n = 1'b0, tx_rst_n = 1'b0;
  logic ready_o, valid_o;
  logic [Width-1:0] taken_q = '0, given_q = '0;
  item_t item_i, item_o;

  assign item_i = '{kind: ItemGrant, peer: '0, id: '0, bytes: bytes_t'(taken_q), phase: '0};

  em_host_grants #(
      .Depth     (Depth),
      .CrossDepth(CrossDepth)
  ) u_dut (
      .rx_clk_i,
      .rx_rst_ni(rx_rst_n),
      .tx_clk_i,
      .tx_rst_ni(tx_rst_n),
      .valid_i,
      .ready_o,
      .item_i,
      .valid_o,
      .ready_i,
      .item_o
  );

  always_ff @(posedge rx_clk_i) begin
    rx_rst_n <= 1'b1;
    if (rx_rst_n && valid_i && ready_o) taken_q <= taken_q + 1'b1;
  end

  always_ff @(posedge tx_clk_i) begin
    tx_rst_n <= 1'b1;
    if (tx_rst_n && valid_o && ready_i) given_q <= given_q + 1'b1;
  end

  always_comb begin
    if (tx_rst_n && valid_o) assert (item_o.bytes[Width-1:0] == given_q);
    if (tx_rst_n && rx_rst_n) begin
      assert (Width'(taken_q - given_q) <= Width'(Depth + CrossDepth + 1));
    end
  end

endmodule
