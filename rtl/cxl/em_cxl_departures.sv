/// Packets wait here in their order, and leave as frames. The packet manager pushes one only if the
/// count shows room.
module em_cxl_departures
  import em_cxl_pkg::*;
#(
    parameter int unsigned Depth = 4,
    localparam int unsigned CountBits = $clog2(Depth + 1)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                 valid_i,
    input  packet_t              packet_i,
    output logic [CountBits-1:0] count_o,

    output logic  beat_valid_o,
    input  logic  beat_ready_i,
    output beat_t beat_o
);

  logic unused_ready, valid, ready;
  packet_t packet;

  em_fifo_sync #(
      .Width($bits(packet_t)),
      .Depth(Depth)
  ) u_packets (
      .clk_i,
      .rst_ni,
      .valid_i,
      .ready_o(unused_ready),
      .data_i (packet_i),
      .valid_o(valid),
      .ready_i(ready),
      .data_o (packet),
      .count_o
  );

  em_cxl_tx u_tx (
      .clk_i,
      .rst_ni,
      .valid_i (valid),
      .ready_o (ready),
      .packet_i(packet),
      .beat_valid_o,
      .beat_ready_i,
      .beat_o
  );

endmodule
