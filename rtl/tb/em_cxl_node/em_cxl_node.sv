/// A compute node with its AXI4 slave and cache, and the packet manager of a memory node, for the
/// bench: it is the processor, the memory and the network between them.
module em_cxl_node
  import em_cxl_pkg::*;
#(
    parameter int unsigned Sets = 2,
    parameter int unsigned Fetches = 8,
    parameter int unsigned Window = 64,
    localparam int unsigned PlaceBits = $clog2(Window)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic  ar_valid_i,
    output logic  ar_ready_o,
    input  id_t   ar_id_i,
    input  line_t ar_line_i,
    output logic  r_valid_o,
    input  logic  r_ready_i,
    output id_t   r_id_o,
    output data_t r_data_o,
    output logic  r_error_o,
    input  logic  aw_valid_i,
    output logic  aw_ready_o,
    input  id_t   aw_id_i,
    input  line_t aw_line_i,
    input  logic  w_valid_i,
    output logic  w_ready_o,
    input  data_t w_data_i,
    input  mask_t w_strb_i,
    output logic  b_valid_o,
    input  logic  b_ready_i,
    output id_t   b_id_o,
    output logic  b_error_o,
    input  logic  clean_i,
    input  logic  clean_drop_i,
    output logic  cleaned_o,
    output logic  lost_o,

    output logic                 issued_o,
    output logic [PlaceBits-1:0] issued_place_o,
    output request_t             issued_request_o,
    input  logic                 complete_i,
    input  logic [PlaceBits-1:0] complete_place_i,
    input  response_t            complete_response_i,

    /// From either node and to it: 0 is the compute node.
    output logic  [1:0] beat_valid_o,
    input  logic  [1:0] beat_ready_i,
    output beat_t       beat_o[2],
    input  logic  [1:0] beat_valid_i,
    input  beat_t       beat_i[2],
    input  logic  [1:0] error_i
);

  localparam mac_t Compute = 48'h0c_00_00_00_00_02;
  localparam mac_t Memory = 48'h0d_00_00_00_00_02;

  logic pfc, unused_issuable, unused_arrived;
  logic [1:0] unused_dropped;
  arrival_e unused_arrival;

  // C++ drives flat ports.
  axi_request_t axi_request;
  axi_response_t axi_response;
  assign axi_request = '{ar_valid: ar_valid_i, ar_id: ar_id_i, ar_line: ar_line_i, r_ready:
      r_ready_i, aw_valid: aw_valid_i, aw_id: aw_id_i, aw_line: aw_line_i, w_valid: w_valid_i,
      w_data: w_data_i, w_strb: w_strb_i, b_ready: b_ready_i};
  assign {ar_ready_o, r_valid_o, r_id_o, r_data_o, r_error_o, aw_ready_o, w_ready_o, b_valid_o,
      b_id_o, b_error_o} = axi_response;

  em_cxl_compute_node #(
      .Sets       (Sets),
      .Fetches    (Fetches),
      .Window     (Window),
      .Slots      (2 * Window),
      .RetryCycles(1_500)
  ) u_compute (
      .clk_i,
      .rst_ni,
      .mac_i       (Compute),
      .peer_i      (Memory),
      .axi_i       (axi_request),
      .axi_o       (axi_response),
      .clean_i,
      .clean_drop_i,
      .cleaned_o,
      .lost_o,
      .beat_valid_o(beat_valid_o[0]),
      .beat_ready_i(beat_ready_i[0]),
      .beat_o      (beat_o[0]),
      .beat_valid_i(beat_valid_i[0]),
      .beat_i      (beat_i[0]),
      .error_i     (error_i[0]),
      .pfc_i       (pfc),
      .dropped_o   (unused_dropped[0])
  );

  em_cxl_memory_packets #(
      .Window (Window),
      .Entries(64)
  ) u_memory (
      .clk_i,
      .rst_ni,
      .mac_i              (Memory),
      .peer_i             (Compute),
      .drain_i            (1'b1),
      .issuable_o         (unused_issuable),
      .issue_i            (1'b1),
      .issued_o,
      .issued_place_o,
      .issued_request_o,
      .complete_i,
      .complete_place_i,
      .complete_response_i,
      .beat_valid_o       (beat_valid_o[1]),
      .beat_ready_i       (beat_ready_i[1]),
      .beat_o             (beat_o[1]),
      .beat_valid_i       (beat_valid_i[1]),
      .beat_i             (beat_i[1]),
      .error_i            (error_i[1]),
      .pfc_o              (pfc),
      .arrived_o          (unused_arrived),
      .arrival_o          (unused_arrival),
      .dropped_o          (unused_dropped[1])
  );

endmodule
