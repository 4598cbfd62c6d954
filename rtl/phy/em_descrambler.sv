/// Undoes em_scrambler, and is in step with it after the first block, from any state. One wrong bit
/// on the line becomes three: at +0, +39 and +58.
module em_descrambler #(
    localparam int unsigned Bits = em_pkg::PayloadBits
) (
    input  logic            clk_i,
    input  logic            rst_ni,
    /// A block has come: without it nothing moves.
    input  logic            valid_i,
    input  logic [Bits-1:0] line_i,
    /// In the same cycle.
    output logic [Bits-1:0] payload_o
);

  localparam int unsigned Taps = 58;
  localparam int unsigned NearTap = 39;

  logic [Taps-1:0] history_q;
  logic [Taps+Bits-1:0] line;

  assign line      = {line_i, history_q};
  assign payload_o = line_i ^ line[Taps-NearTap+:Bits] ^ line[0+:Bits];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) history_q <= '1;
    else if (valid_i) history_q <= line[Bits+:Taps];
  end

endmodule
