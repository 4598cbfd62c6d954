/// The scrambler of clause 49, x^58 + x^39 + 1, over the 64 payload bits of a block a cycle. Sync
/// headers are not scrambled.
///
/// A bit on the line is the payload's bit, plus the bits 39 and 58 before it on the line.
module em_scrambler #(
    localparam int unsigned Bits = em_pkg::PayloadBits
) (
    input  logic            clk_i,
    input  logic            rst_ni,
    /// The block is sent: without it nothing moves.
    input  logic            valid_i,
    input  logic [Bits-1:0] payload_i,
    /// In the same cycle.
    output logic [Bits-1:0] line_o
);

  localparam int unsigned Taps = 58;
  localparam int unsigned NearTap = 39;
  localparam int unsigned Rest = Bits - NearTap;

  // The line from 58 bits before this block on, the oldest in bit 0.
  logic [Taps-1:0] history_q;
  logic [NearTap-1:0] first;
  logic [Rest-1:0] second;

  // As many bits at once as none of them is added to another one.
  assign first  = payload_i[0+:NearTap] ^ history_q[Taps-NearTap+:NearTap] ^ history_q[0+:NearTap];
  assign second = payload_i[NearTap+:Rest] ^ first[0+:Rest] ^
                  {first[0+:Rest+NearTap-Taps], history_q[Taps-1:NearTap]};

  assign line_o = {second, first};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) history_q <= '1;
    else if (valid_i) history_q <= line_o[Bits-1-:Taps];
  end

endmodule
