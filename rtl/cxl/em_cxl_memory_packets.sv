/// The memory node's packet manager (section III.C) for one compute node: a receive FIFO, requests
/// in order, each executed once, and responses until they are known to have come. Between it and a
/// MAC are two AXI4-Streams; behind it is whatever executes requests.
///
/// The FIFO counts entries of 512 bits, as the prototype's does: a frame takes one or two. Above a
/// threshold it asks for a PFC frame; a frame without room is dropped, and comes again.
module em_cxl_memory_packets
  import em_cxl_pkg::*;
#(
    parameter int unsigned Window = 512,
    parameter sequence_t   Initial = '0,
    parameter bit          GoBackN = 1'b0,
    /// Of 512 bits, and those from which on a PFC frame is asked for (sections IV and V).
    parameter int unsigned Entries = 512,
    parameter int unsigned Threshold = 50,
    localparam int unsigned PlaceBits = $clog2(Window)
) (
    input logic clk_i,
    input logic rst_ni,
    /// Of this node, and of the compute node.
    input mac_t mac_i,
    input mac_t peer_i,

    /// A request may leave the FIFO in this cycle: the pace of the node's data path.
    input logic drain_i,

    output logic                 issuable_o,
    input  logic                 issue_i,
    output logic                 issued_o,
    output logic [PlaceBits-1:0] issued_place_o,
    output request_t             issued_request_o,
    input  logic                 complete_i,
    input  logic [PlaceBits-1:0] complete_place_i,
    input  response_t            complete_response_i,

    output logic  beat_valid_o,
    input  logic  beat_ready_i,
    output beat_t beat_o,
    input  logic  beat_valid_i,
    input  beat_t beat_i,
    input  logic  error_i,
    /// More entries are used than the threshold.
    output logic  pfc_o,

    /// A request was taken from the FIFO, and what became of it.
    output logic     arrived_o,
    output arrival_e arrival_o,
    /// A frame was dropped: wrong, foreign, or without room.
    output logic     dropped_o
);

  localparam int unsigned Departures = 4;
  localparam int unsigned UsedBits = $clog2(Entries + 1);

  packet_t arrived, arrival, departing;
  logic arrived_valid, damaged, is_ours, has_room, fifo_ready, push, arrival_valid, arrival_ready;
  logic poll, poll_ready, response_valid, negative_valid, polled_q;
  logic [$clog2(Departures+1)-1:0] departures;
  logic [$clog2(Entries+1)-1:0] unused_arrivals;
  logic [UsedBits-1:0] used_q;
  logic [1:0] entries_in, entries_out;
  sequence_t response_sequence, nak, sack;
  response_t response;
  request_t request;
  fault_e unused_fault;

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

  function automatic logic [1:0] entries_of(logic [7:0] command);
    return (command == CommandReadRequest) ? 2'd1 : 2'd2;
  endfunction

  // A response does not come this way.
  assign is_ours    = arrived.to == mac_i && arrived.from == peer_i && !arrived.command[7];
  assign entries_in = entries_of(arrived.command);
  assign has_room   = 32'(used_q) + 32'(entries_in) <= Entries && fifo_ready;
  assign push       = arrived_valid && is_ours && has_room;
  assign dropped_o  = damaged || (arrived_valid && !push);
  assign pfc_o      = 32'(used_q) > Threshold;

  em_fifo_ram #(
      .Width($bits(packet_t)),
      .Depth(Entries)
  ) u_arrivals (
      .clk_i,
      .rst_ni,
      .clear_i(1'b0),
      .valid_i(push),
      .ready_o(fifo_ready),
      .data_i (arrived),
      .valid_o(arrival_valid),
      .ready_i(arrival_ready && drain_i),
      .data_o (arrival),
      .count_o(unused_arrivals)
  );

  assign arrived_o   = arrival_valid && arrival_ready && drain_i;
  assign entries_out = entries_of(arrival.command);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) used_q <= '0;
    else used_q <= used_q + (push ? UsedBits'(entries_in) : '0)
                   - (arrived_o ? UsedBits'(entries_out) : '0);
  end

  always_comb begin
    case (arrival.command)
      CommandReadRequest: request.ask = AskRead;
      CommandWriteRequest: request.ask = AskWrite;
      default: request.ask = AskMaskedWrite;
    endcase
    request.id   = arrival.id;
    request.line = arrival.line;
    request.mask = arrival.mask;
    request.data = arrival.data;
  end

  // A poll whose answer is under way may need a place, too.
  assign poll = 32'(departures) + 32'(polled_q) < Departures;

  em_cxl_responder #(
      .Window (Window),
      .Initial(Initial),
      .GoBackN(GoBackN)
  ) u_responder (
      .clk_i,
      .rst_ni,
      .request_valid_i    (arrival_valid && drain_i),
      .request_ready_o    (arrival_ready),
      .request_sequence_i (arrival.sequence_number),
      .request_i          (request),
      .arrival_o,
      .issuable_o,
      .issue_i,
      .issued_o,
      .issued_place_o,
      .issued_request_o,
      .complete_i,
      .complete_place_i,
      .complete_response_i,
      .poll_i             (poll),
      .poll_ready_o       (poll_ready),
      .response_valid_o   (response_valid),
      .response_sequence_o(response_sequence),
      .response_o         (response),
      .negative_valid_o   (negative_valid),
      .nak_o              (nak),
      .sack_o             (sack)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) polled_q <= 1'b0;
    else polled_q <= poll && poll_ready;
  end

  // Out.
  always_comb begin
    departing      = '0;
    departing.to   = peer_i;
    departing.from = mac_i;
    if (negative_valid) begin
      departing.nak  = nak;
      departing.sack = sack;
    end
    if (response_valid) begin
      departing.sequence_number = response_sequence;
      departing.id              = response.id;
      departing.status          = response.status;
      departing.data            = response.is_read ? response.data : '0;
      departing.acked_read      = negative_valid && response.is_read;
    end
    case ({negative_valid, response_valid})
      2'b10: departing.command = CommandSackNak;
      2'b11: departing.command = CommandSackNakAck;
      default: departing.command = response.is_read ? CommandReadResponse : CommandWriteResponse;
    endcase
  end

  em_cxl_departures #(
      .Depth(Departures)
  ) u_departures (
      .clk_i,
      .rst_ni,
      .valid_i (response_valid || negative_valid),
      .packet_i(departing),
      .count_o (departures),
      .beat_valid_o,
      .beat_ready_i,
      .beat_o
  );

endmodule
