/// Sends a port's frames, one after the other, from the ingress ports in turn, with the gap that
/// Ethernet requires. It stands in the place of an encoder.
module em_l2_egress
  import em_pkg::*;
  import em_link_pkg::*;
#(
    parameter int unsigned Ports = 8
) (
    input logic clk_i,
    input logic rst_ni,

    /// By ingress port: it has a frame for this port, and it has chosen this port.
    input  logic [Ports-1:0]   wants_i,
    output logic [Ports-1:0]   offers_o,
    input  logic [Ports-1:0]   accepted_i,
    input  logic [Ports-1:0]   valid_i,
    input  logic [Ports-1:0]   last_i,
    input  block_t [Ports-1:0] block_i,
    output logic [Ports-1:0]   ready_o,

    // For each cycle with ready one block, in the next one: of a frame, or an idle.
    input  logic   encoder_ready_i,
    output logic   encoded_valid_o,
    output block_t encoded_o,
    /// It is a frame's.
    output logic   frame_o
);

  logic [Ports-1:0] from_q;
  logic [1:0] gap_q, deficit_q, short;
  logic [2:0] over;
  logic idles, busy, gives, valid, last, frame_q, asked_q;
  block_t block, block_q;

  assign busy = from_q != '0;

  em_arb_rr #(
      .Requests(Ports)
  ) u_turn (
      .clk_i,
      .rst_ni,
      .request_i(busy ? '0 : wants_i),
      .grant_o  (offers_o),
      .taken_i  (accepted_i != '0)
  );

  always_comb begin
    {valid, last, block} = '0;
    for (int unsigned p = 0; p < Ports; p++) begin
      if (from_q[p]) {valid, last, block} |= {valid_i[p], last_i[p], block_i[p]};
    end
  end

  assign gives   = encoder_ready_i && valid && gap_q == '0;
  assign ready_o = (encoder_ready_i && gap_q == '0) ? from_q : '0;

  // 12 octets from the last of a frame to the next one, on average: what is left of the last
  // block, and an idle or two. At most three octets are owed to gaps (deficit idle count of
  // clause 46.3.1.4).
  assign over  = terminate_octets(block.payload[7:0]);
  assign short = deficit_q + over[1:0];
  assign idles = over > 3'd4 && (over[1:0] + {1'b0, deficit_q} > 3'd3);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      from_q <= '0;
      gap_q     <= '0;
      deficit_q <= '0;
    end else begin
      if (accepted_i != '0) from_q <= accepted_i;
      else if (gives && last) from_q <= '0;
      if (gives && last) begin
        gap_q <= idles ? 2'd2 : 2'd1;
        if (idles) deficit_q <= '0;
        else if (over > 3'd4) deficit_q <= short;
        else deficit_q <= ({1'b0, deficit_q} > 3'd4 - over) ? short : '0;
      end else if (encoder_ready_i && gap_q != '0) gap_q <= gap_q - 1'b1;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      asked_q <= 1'b0;
      frame_q <= 1'b0;
    end else begin
      asked_q <= encoder_ready_i;
      frame_q <= gives;
    end
  end
  always_ff @(posedge clk_i) block_q <= gives ? block : Idle;

  assign encoded_valid_o = asked_q;
  assign encoded_o       = block_q;
  assign frame_o         = frame_q;

endmodule
