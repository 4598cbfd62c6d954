/// em_cxl_bucket lets at most its depth and the rate's share pass, in any time, at rates that
/// change in any cycle.
///
/// A watch begins in any cycle, with the depth of the bucket, and is given what the rate brings; it
/// pays for each frame that goes. It never has fewer tokens than the bucket, so it can always pay.
module em_cxl_bucket_proof
  import em_cxl_pkg::*;
#(
    parameter int unsigned ClockPs = 4_000,
    parameter int unsigned DepthBytes = 242
) (
    input logic         clk_i,
    input rate_t        rate_i,
    input logic         valid_i,
    input frame_bytes_t bytes_i,
    input logic         begin_i
);

  localparam int unsigned TokensPerByte = 8_000_000 / ClockPs;
  localparam int unsigned SinceBits = 40;
  localparam logic [SinceBits-1:0] Depth = SinceBits'(DepthBytes * TokensPerByte);

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic ready;
  logic [SinceBits-1:0] left_q = Depth, cost, tokens;

  em_cxl_bucket #(
      .ClockPs   (ClockPs),
      .DepthBytes(DepthBytes)
  ) u_dut (
      .clk_i,
      .rst_ni (rst_n),
      .rate_i,
      .valid_i,
      .bytes_i,
      .ready_o(ready)
  );

  assign cost = SinceBits'(bytes_i) * SinceBits'(TokensPerByte);
  assign tokens = SinceBits'(u_dut.tokens_q);

  always_ff @(posedge clk_i) begin
    if (rst_n) begin
      // A watch of 2^39 tokens: 22 ms at 100 Gb/s. Longer ones are watches one after the other.
      assume (left_q < {1'b0, {(SinceBits - 1) {1'b1}}});
      assert (tokens <= Depth);
      assert (tokens <= left_q);
      assert (ready == (tokens >= cost));
      if (begin_i) left_q <= Depth;
      else left_q <= left_q + SinceBits'(rate_i) - ((valid_i && ready) ? cost : '0);
    end
  end

endmodule
