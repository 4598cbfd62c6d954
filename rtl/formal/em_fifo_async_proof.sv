/// em_fifo_async between any two clocks: words are numbered as they are written, and must be read
/// with the numbers 0, 1, 2 and so on; at most Depth and one (in the output) are inside.
///
/// In each step of the solver either clock has an edge, or both, or neither.
module em_fifo_async_proof #(
    parameter int unsigned Width = 4,
    parameter int unsigned Depth = 4
) (
    input logic write_clk_i,
    input logic write_valid_i,
    input logic read_clk_i,
    input logic read_ready_i
);

  // Both sides begin in reset, and each leaves it with its first edge.
  logic write_rst_n = 1'b0, read_rst_n = 1'b0;
  logic write_ready_o, read_valid_o;
  logic [Width-1:0] written_q = '0, read_q = '0, read_data_o;

  em_fifo_async #(
      .Width(Width),
      .Depth(Depth)
  ) u_dut (
      .write_clk_i,
      .write_rst_ni(write_rst_n),
      .write_valid_i,
      .write_ready_o,
      .write_data_i(written_q),
      .read_clk_i,
      .read_rst_ni (read_rst_n),
      .read_valid_o,
      .read_ready_i,
      .read_data_o
  );

  always_ff @(posedge write_clk_i) begin
    write_rst_n <= 1'b1;
    if (write_rst_n && write_valid_i && write_ready_o) written_q <= written_q + 1'b1;
  end

  always_ff @(posedge read_clk_i) begin
    read_rst_n <= 1'b1;
    if (read_rst_n && read_valid_o && read_ready_i) read_q <= read_q + 1'b1;
  end

  always_comb begin
    if (read_rst_n && read_valid_o) assert (read_data_o == read_q);
    if (read_rst_n && write_rst_n) assert (Width'(written_q - read_q) <= Width'(Depth + 1));
  end

endmodule
