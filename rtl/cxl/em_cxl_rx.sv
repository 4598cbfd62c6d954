/// Takes frames from an AXI4-Stream of 512 bits, which a MAC never holds back, and gives a packet,
/// or the fault of a frame that is none, two cycles behind the last beat. A frame whose check
/// sequence was wrong is dropped, and said so.
module em_cxl_rx
  import em_cxl_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input logic  beat_valid_i,
    input beat_t beat_i,
    /// With the last beat: the check sequence was wrong.
    input logic  error_i,

    output logic    valid_o,
    output logic    dropped_o,
    output fault_e  fault_o,
    output packet_t packet_o
);

  localparam int unsigned RestOctets = FrameOctetsMax - BeatOctets;

  logic [8*BeatOctets-1:0] first_q;
  logic [8*RestOctets-1:0] rest, rest_q;
  frame_t frame_q;
  octets_t octets_q, kept, whole;
  // Beats before this one: none, one, or more than a frame of this protocol has.
  logic [1:0] beats_q;
  logic ended_q, error_q;
  packet_t packet;
  fault_e fault;

  always_comb begin
    kept = '0;
    for (int unsigned i = 0; i < BeatOctets; i++) kept += octets_t'(beat_i.keep[i]);
  end

  assign rest  = (beats_q == 2'd1) ? beat_i.data[8*RestOctets-1:0] : rest_q;
  assign whole = (beats_q == 2'd0) ? kept : (beats_q == 2'd1) ? kept + octets_t'(BeatOctets) : '1;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      beats_q <= '0;
      ended_q <= 1'b0;
    end else begin
      ended_q <= beat_valid_i && beat_i.last;
      if (beat_valid_i) beats_q <= beat_i.last ? '0 : (beats_q == 2'd2) ? 2'd2 : beats_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (beat_valid_i && beats_q == 2'd0) first_q <= beat_i.data;
    if (beat_valid_i) rest_q <= rest;
    frame_q  <= {rest, (beats_q == 2'd0) ? beat_i.data : first_q};
    octets_q <= whole;
    error_q  <= error_i;
  end

  em_cxl_parse u_parse (
      .frame_i (frame_q),
      .octets_i(octets_q),
      .packet_o(packet),
      .fault_o (fault)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {valid_o, dropped_o} <= '0;
    else begin
      valid_o   <= ended_q && !error_q && fault == FaultNone;
      dropped_o <= ended_q && (error_q || fault != FaultNone);
    end
  end

  always_ff @(posedge clk_i) begin
    packet_o <= packet;
    fault_o  <= error_q ? FaultNone : fault;
  end

endmodule
