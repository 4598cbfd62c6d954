/// A token bucket (section IV): within any time it lets at most its depth and the rate's share
/// pass. It is exact: a token is what 1 Mb/s brings in a cycle, so no rate and no time is rounded.
module em_cxl_bucket
  import em_cxl_pkg::*;
#(
    /// A period that divides the time of a byte at 1 Mb/s, 8 us: 4 ns are 250 MHz.
    parameter int unsigned ClockPs = 4_000,
    /// The longest frame at least, with preamble and gap.
    parameter int unsigned DepthBytes = 242
) (
    input logic clk_i,
    input logic rst_ni,

    input rate_t rate_i,

    /// A frame of so many bytes on the link is there to be sent.
    input  logic         valid_i,
    input  frame_bytes_t bytes_i,
    /// It may go; it goes if it is there.
    output logic         ready_o
);

  localparam int unsigned TokensPerByte = 8_000_000 / ClockPs;
  localparam int unsigned Depth = DepthBytes * TokensPerByte;
  localparam int unsigned TokenBits = $clog2(Depth + 1);
  // With the gain of a cycle.
  localparam int unsigned SumBits = ((TokenBits > RateBits) ? TokenBits : RateBits) + 1;
  localparam int unsigned CostBits = FrameBits + $clog2(TokensPerByte + 1);
  localparam int unsigned CompareBits = (CostBits > TokenBits) ? CostBits : TokenBits;

  logic [TokenBits-1:0] tokens_q, left;
  logic [CostBits-1:0] cost;
  logic [SumBits-1:0] sum;

  assign cost    = CostBits'(bytes_i) * CostBits'(TokensPerByte);
  assign ready_o = CompareBits'(tokens_q) >= CompareBits'(cost);
  assign left    = tokens_q - ((valid_i && ready_o) ? TokenBits'(cost) : '0);
  assign sum     = SumBits'(left) + SumBits'(rate_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) tokens_q <= TokenBits'(Depth);
    else tokens_q <= (sum > SumBits'(Depth)) ? TokenBits'(Depth) : TokenBits'(sum);
  end

endmodule
