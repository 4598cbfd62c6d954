/// The compute node's packet manager (section III.B) for one memory node: requests go out as frames
/// at the rate that congestion control allows, and are kept until their responses have come, which
/// are delivered in order. Between it and a MAC are two AXI4-Streams.
///
/// What comes while a walk is under way waits in a FIFO; what the FIFO has no room for is dropped,
/// and comes again, as after any loss.
module em_cxl_compute_packets
  import em_cxl_pkg::*;
#(
    parameter int unsigned Window = 512,
    parameter int unsigned Slots = 1024,
    parameter sequence_t   Initial = '0,
    parameter bit          GoBackN = 1'b0,
    parameter int unsigned RetryCycles = 5_000,
    parameter int unsigned OriginBits = 8,
    parameter int unsigned InitialMbps = 100_000,
    /// Frames that have come and wait.
    parameter int unsigned Arrivals = 64
) (
    input logic clk_i,
    input logic rst_ni,
    /// Of this node, and of the memory node.
    input mac_t mac_i,
    input mac_t peer_i,

    input  logic                  submit_i,
    output logic                  room_o,
    input  request_t              request_i,
    input  logic [OriginBits-1:0] origin_i,

    output logic                  deliverable_o,
    input  logic                  deliver_i,
    output logic                  delivered_o,
    output response_t             delivered_response_o,
    output line_t                 delivered_line_o,
    output logic [OriginBits-1:0] delivered_origin_o,

    output logic  beat_valid_o,
    input  logic  beat_ready_i,
    output beat_t beat_o,
    input  logic  beat_valid_i,
    input  beat_t beat_i,
    input  logic  error_i,
    /// A PFC frame has come, which the MAC took.
    input  logic  pfc_i,

    output control_t control_o,
    /// A frame was sent, and why.
    output logic     sent_o,
    output why_e     sent_why_o,
    /// A frame was dropped: wrong, foreign, or without room.
    output logic     dropped_o
);

  /// Packets between the retry buffer and the MAC.
  localparam int unsigned Departures = 4;
  /// Octets on the link, preamble and gap included.
  localparam int unsigned LinkRead = 84;
  localparam int unsigned LinkWrite = 113;
  localparam int unsigned LinkMaskedWrite = 121;

  logic ready, sendable, may_send, send, sent, unused_acted, unused_duplicate;
  ask_e ask;
  frame_bytes_t bytes;
  sequence_t sequence_number;
  request_t request;
  packet_t departing, arrived, arrival;
  logic [$clog2(Departures+1)-1:0] departures;
  logic [$clog2(Arrivals+1)-1:0] unused_arrivals;
  logic arrived_valid, arrived_ready, is_ours, damaged, arrival_valid, pop;
  logic is_response, is_negative, is_congestion, is_new, negative_done_q, numbered_q;
  logic [31:0] number_q, ahead;
  fault_e unused_fault;
  receipt_e unused_receipt;
  response_t response;
  cycles_t now_q;
  logic takes_negative, takes_response, pfc;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) now_q <= '0;
    else now_q <= now_q + 1'b1;
  end

  // Out: one packet at a time leaves the retry buffer, if there is room for it behind.
  always_comb begin
    case (ask)
      AskRead: bytes = frame_bytes_t'(LinkRead);
      AskWrite: bytes = frame_bytes_t'(LinkWrite);
      default: bytes = frame_bytes_t'(LinkMaskedWrite);
    endcase
  end

  logic has_place;
  assign has_place = 32'(departures) + 32'(sent) < Departures;
  assign send      = sendable && may_send && has_place;

  em_cxl_rate #(
      .InitialMbps(InitialMbps)
  ) u_rate (
      .clk_i,
      .rst_ni,
      .pfc_i      (pfc),
      .state_o    (control_o),
      .acted_o    (unused_acted),
      .duplicate_o(unused_duplicate),
      .valid_i    (sendable && has_place),
      .bytes_i    (bytes),
      .ready_o    (may_send)
  );

  em_cxl_requester #(
      .Window     (Window),
      .Slots      (Slots),
      .Initial    (Initial),
      .GoBackN    (GoBackN),
      .RetryCycles(RetryCycles),
      .OriginBits (OriginBits)
  ) u_requester (
      .clk_i,
      .rst_ni,
      .now_i               (now_q),
      .ready_o             (ready),
      .submit_i,
      .room_o,
      .request_i,
      .origin_i,
      .sendable_o          (sendable),
      .send_ask_o          (ask),
      .send_i              (send),
      .sent_o              (sent),
      .sent_sequence_o     (sequence_number),
      .sent_request_o      (request),
      .sent_why_o,
      .response_i          (takes_response),
      .response_sequence_i (arrival.sequence_number),
      .response_word_i     (response),
      .negative_i          (takes_negative),
      .nak_i               (arrival.nak),
      .sack_i              (arrival.sack),
      .receipt_o           (unused_receipt),
      .tick_i              (1'b1),
      .deliverable_o,
      .deliver_i,
      .delivered_o,
      .delivered_response_o,
      .delivered_line_o,
      .delivered_origin_o
  );

  assign sent_o = sent;

  always_comb begin
    departing                 = '0;
    departing.to              = peer_i;
    departing.from            = mac_i;
    departing.sequence_number = sequence_number;
    departing.id              = request.id;
    departing.line            = request.line;
    departing.mask            = request.mask;
    departing.data            = request.data;
    case (request.ask)
      AskRead: departing.command = CommandReadRequest;
      AskWrite: departing.command = CommandWriteRequest;
      default: departing.command = CommandMaskedWriteRequest;
    endcase
  end

  em_cxl_departures #(
      .Depth(Departures)
  ) u_departures (
      .clk_i,
      .rst_ni,
      .valid_i (sent),
      .packet_i(departing),
      .count_o (departures),
      .beat_valid_o,
      .beat_ready_i,
      .beat_o
  );

  // In.
  em_cxl_rx u_rx (
      .clk_i,
      .rst_ni,
      .beat_valid_i,
      .beat_i,
      .error_i,
      .valid_o  (arrived_valid),
      .dropped_o(damaged),
      .fault_o  (unused_fault),
      .packet_o (arrived)
  );

  // A request does not come this way.
  assign is_ours   = arrived.to == mac_i && arrived.from == peer_i && arrived.command[7];
  assign dropped_o = damaged || (arrived_valid && !(is_ours && arrived_ready));

  em_fifo_sync #(
      .Width($bits(packet_t)),
      .Depth(Arrivals)
  ) u_arrivals (
      .clk_i,
      .rst_ni,
      .valid_i(arrived_valid && is_ours),
      .ready_o(arrived_ready),
      .data_i (arrived),
      .valid_o(arrival_valid),
      .ready_i(pop),
      .data_o (arrival),
      .count_o(unused_arrivals)
  );

  // A SACK + NAK is looked at before the response that comes with it.
  assign is_negative    = arrival.command == CommandSackNak || arrival.command == CommandSackNakAck;
  assign is_congestion  = arrival.command == CommandCongestion;
  assign is_response    = !is_congestion && arrival.command != CommandSackNak;
  assign takes_negative = arrival_valid && ready && is_negative && !negative_done_q;
  assign takes_response = arrival_valid && ready && is_response
                          && (!is_negative || negative_done_q);
  assign pop            = (takes_negative && !is_response) || takes_response || is_congestion;

  always_comb begin
    response.is_read = arrival.command == CommandReadResponse || arrival.acked_read;
    response.id      = arrival.id;
    response.status  = status_e'(arrival.status);
    response.data    = arrival.data;
  end

  // An old congestion packet says nothing.
  assign ahead  = arrival.number - number_q;
  assign is_new = !numbered_q || (ahead != '0 && !ahead[31]);
  assign pfc    = pfc_i || (arrival_valid && is_congestion && is_new);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {negative_done_q, numbered_q} <= '0;
    else begin
      if (takes_negative && is_response) negative_done_q <= 1'b1;
      else if (takes_response) negative_done_q <= 1'b0;
      if (arrival_valid && is_congestion) numbered_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (arrival_valid && is_congestion && is_new) number_q <= arrival.number;
  end

endmodule
