/// Sends packets as frames on an AXI4-Stream of 512 bits towards a MAC, which adds the check
/// sequence. The first beat is there in the cycle behind its packet; a frame of two beats takes two
/// cycles, and frames follow each other without a gap.
module em_cxl_tx
  import em_cxl_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input  logic    valid_i,
    output logic    ready_o,
    input  packet_t packet_i,

    output logic  beat_valid_o,
    input  logic  beat_ready_i,
    output beat_t beat_o
);

  frame_t frame, frame_q;
  octets_t octets, octets_q;
  logic valid_q, second_q, is_long, ends;

  em_cxl_emit u_emit (
      .packet_i,
      .frame_o (frame),
      .octets_o(octets)
  );

  assign is_long      = octets_q > octets_t'(BeatOctets);
  assign ends         = valid_q && beat_ready_i && (second_q || !is_long);
  assign ready_o      = !valid_q || ends;
  assign beat_valid_o = valid_q;
  assign beat_o.last  = second_q || !is_long;
  assign beat_o.data  = second_q ? (8 * BeatOctets)'(frame_q[8*FrameOctetsMax-1:8*BeatOctets])
                                 : frame_q[8*BeatOctets-1:0];

  always_comb begin
    for (int unsigned i = 0; i < BeatOctets; i++) begin
      beat_o.keep[i] = octets_t'(i) + (second_q ? octets_t'(BeatOctets) : '0) < octets_q;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {valid_q, second_q} <= '0;
    else begin
      if (ready_o) valid_q <= valid_i;
      if (valid_q && beat_ready_i) second_q <= is_long && !second_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (valid_i && ready_o) begin
      frame_q  <= frame;
      octets_q <= octets;
    end
  end

endmodule
