/// The packet managers of a compute node and of a memory node, for the bench: it is the host, the
/// memory and the network between them.
module em_cxl_pair
  import em_cxl_pkg::*;
#(
    parameter int unsigned Window = 512,
    parameter sequence_t   Initial = '0,
    parameter bit          GoBackN = 1'b0,
    parameter int unsigned Entries = 512,
    parameter int unsigned Threshold = 50,
    localparam int unsigned PlaceBits = $clog2(Window)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic        submit_i,
    output logic        room_o,
    input  request_t    request_i,
    input  logic [15:0] origin_i,
    input  logic        deliver_i,
    output logic        delivered_o,
    output response_t   delivered_response_o,
    output logic [15:0] delivered_origin_o,

    input  logic                 drain_i,
    input  logic                 issue_i,
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
    input  logic  [1:0] error_i,
    input  logic        pfc_i,
    output logic        pfc_o,

    output logic       sent_o,
    output why_e       sent_why_o,
    output logic       arrived_o,
    output arrival_e   arrival_o,
    output logic [1:0] dropped_o
);

  localparam mac_t Compute = 48'h0c_00_00_00_00_02;
  localparam mac_t Memory = 48'h0d_00_00_00_00_02;

  logic unused_deliverable, unused_issuable;
  line_t unused_line;
  control_t unused_control;

  em_cxl_compute_packets #(
      .Window     (Window),
      .Slots      (2 * Window),
      .Initial    (Initial),
      .GoBackN    (GoBackN),
      .RetryCycles(1_500),
      .OriginBits (16)
  ) u_compute (
      .clk_i,
      .rst_ni,
      .mac_i               (Compute),
      .peer_i              (Memory),
      .submit_i,
      .room_o,
      .request_i,
      .origin_i,
      .deliverable_o       (unused_deliverable),
      .deliver_i,
      .delivered_o,
      .delivered_response_o,
      .delivered_line_o    (unused_line),
      .delivered_origin_o,
      .beat_valid_o        (beat_valid_o[0]),
      .beat_ready_i        (beat_ready_i[0]),
      .beat_o              (beat_o[0]),
      .beat_valid_i        (beat_valid_i[0]),
      .beat_i              (beat_i[0]),
      .error_i             (error_i[0]),
      .pfc_i,
      .control_o           (unused_control),
      .sent_o,
      .sent_why_o,
      .dropped_o           (dropped_o[0])
  );

  em_cxl_memory_packets #(
      .Window   (Window),
      .Initial  (Initial),
      .GoBackN  (GoBackN),
      .Entries  (Entries),
      .Threshold(Threshold)
  ) u_memory (
      .clk_i,
      .rst_ni,
      .mac_i              (Memory),
      .peer_i             (Compute),
      .drain_i,
      .issuable_o         (unused_issuable),
      .issue_i,
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
      .pfc_o,
      .arrived_o,
      .arrival_o,
      .dropped_o          (dropped_o[1])
  );

endmodule
