/// The rate at which a compute node sends (section III.D): congestion control, and the token bucket
/// that keeps to it. A rate fills the bucket from the cycle on in which the state shows it.
module em_cxl_rate
  import em_cxl_pkg::*;
#(
    parameter int unsigned LineMbps    = 100_000,
    parameter int unsigned FloorMbps   = 1_000,
    parameter int unsigned InitialMbps = 100_000,
    parameter int unsigned StepMbps    = 1_000,
    parameter int unsigned T1Cycles    = 12_500,
    parameter int unsigned T2Cycles    = 2_500,
    parameter int unsigned T3Cycles    = 2_750,
    parameter int unsigned T4Cycles    = 50_000,
    parameter int unsigned T5Cycles    = 10_000,
    parameter int unsigned T6Cycles    = 5_000,
    parameter int unsigned ClockPs     = 4_000,
    parameter int unsigned DepthBytes  = 242
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic     pfc_i,
    output control_t state_o,
    output logic     acted_o,
    output logic     duplicate_o,

    /// A frame of so many bytes on the link waits; it may go.
    input  logic         valid_i,
    input  frame_bytes_t bytes_i,
    output logic         ready_o
);

  em_cxl_control #(
      .LineMbps   (LineMbps),
      .FloorMbps  (FloorMbps),
      .InitialMbps(InitialMbps),
      .StepMbps   (StepMbps),
      .T1Cycles   (T1Cycles),
      .T2Cycles   (T2Cycles),
      .T3Cycles   (T3Cycles),
      .T4Cycles   (T4Cycles),
      .T5Cycles   (T5Cycles),
      .T6Cycles   (T6Cycles)
  ) u_control (
      .clk_i,
      .rst_ni,
      .pfc_i,
      .state_o,
      .acted_o,
      .duplicate_o
  );

  em_cxl_bucket #(
      .ClockPs   (ClockPs),
      .DepthBytes(DepthBytes)
  ) u_bucket (
      .clk_i,
      .rst_ni,
      .rate_i(state_o.current),
      .valid_i,
      .bytes_i,
      .ready_o
  );

endmodule
