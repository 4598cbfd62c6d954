/// Both ends of a MAC's streams, for the bench: it drives either, and sees what comes out.
module em_cxl_codec
  import em_cxl_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input  logic    valid_i,
    output logic    ready_o,
    input  packet_t packet_i,
    output logic    beat_valid_o,
    input  logic    beat_ready_i,
    output beat_t   beat_o,

    input  logic    beat_valid_i,
    input  beat_t   beat_i,
    input  logic    error_i,
    output logic    valid_o,
    output logic    dropped_o,
    output fault_e  fault_o,
    output packet_t packet_o
);

  em_cxl_tx u_tx (
      .clk_i,
      .rst_ni,
      .valid_i,
      .ready_o,
      .packet_i,
      .beat_valid_o,
      .beat_ready_i,
      .beat_o
  );

  em_cxl_rx u_rx (
      .clk_i,
      .rst_ni,
      .beat_valid_i,
      .beat_i,
      .error_i,
      .valid_o,
      .dropped_o,
      .fault_o,
      .packet_o
  );

endmodule
