/// em_descrambler gives back what em_scrambler took, from the second block on, wherever the two
/// began: in step or not, with gaps or without.
module em_descrambler_proof (
    input logic        clk_i,
    input logic        valid_i,
    input logic [63:0] payload_i,
    /// What the descrambler saw before the scrambler's first block.
    input logic        stray_i,
    input logic [63:0] stray_line_i
);

  logic rst_n = 1'b0;
  // The first block after anything else on the line passed.
  logic in_step_q = 1'b0;
  logic [63:0] line, payload;

  em_scrambler u_scrambler (
      .clk_i,
      .rst_ni (rst_n),
      .valid_i(valid_i && !stray_i),
      .payload_i,
      .line_o (line)
  );

  em_descrambler u_dut (
      .clk_i,
      .rst_ni   (rst_n),
      .valid_i  (valid_i),
      .line_i   (stray_i ? stray_line_i : line),
      .payload_o(payload)
  );

  always_ff @(posedge clk_i) begin
    rst_n <= 1'b1;
    if (rst_n && valid_i) in_step_q <= !stray_i;
    if (rst_n && valid_i && !stray_i && in_step_q) assert (payload == payload_i);
  end

endmodule
