/// A compute node for one memory node: AXI4 slave, cache, packet manager, AXI4-Stream to a MAC.
///
/// What the cache misses becomes a read request, its victims write requests before it, in the order
/// of the cache's steps. A memory node executes them in that order, so a fetch behind the
/// write-back of its line sees it. A store that replaces a dirty line is answered once that line is
/// acknowledged (Table II).
module em_cxl_compute_node
  import em_cxl_axi_pkg::*;
  import em_cxl_pkg::*;
#(
    parameter int unsigned Sets = 128,
    parameter int unsigned Fetches = 64,
    parameter int unsigned InFlight = 16,
    parameter int unsigned Window = 512,
    parameter int unsigned Slots = 1024,
    parameter sequence_t   Initial = '0,
    parameter int unsigned RetryCycles = 5_000
) (
    input logic clk_i,
    input logic rst_ni,
    input mac_t mac_i,
    input mac_t peer_i,

    input  axi_request_t  axi_i,
    output axi_response_t axi_o,

    /// Writes all dirty lines, and with `drop` empties the cache; done once all are acknowledged.
    input  logic clean_i,
    input  logic clean_drop_i,
    output logic cleaned_o,
    /// A line that was written back was lost.
    output logic lost_o,

    output logic  beat_valid_o,
    input  logic  beat_ready_i,
    output beat_t beat_o,
    input  logic  beat_valid_i,
    input  beat_t beat_i,
    input  logic  error_i,
    input  logic  pfc_i,
    output logic  dropped_o
);

  localparam int unsigned Steps = 8;
  localparam int unsigned PlaceBits = $clog2(Sets) + WayBits;

  /// What one step of the cache asks of the memory node: a victim first.
  typedef struct packed {
    logic   victim;
    line_t  victim_line;
    mask_t  victim_mask;
    logic   waits;        // a store waits for the victim's end
    id_t    id;
    logic   fetch;
    fetch_t number;
    line_t  line;
  } step_t;

  /// What comes back with a response.
  typedef struct packed {
    logic fetch;
    logic waits;
    id_t  id;     // or the fetch's number
  } origin_t;

  logic access_valid, access_ready, slave_valid, slave_ready, room;
  cache_op_e access_op, slave_op, step_op;
  line_t access_line, slave_line;
  id_t access_id, step_id;
  mask_t access_mask;
  data_t access_data, victim_data_in, victim_data, read_data;
  logic fill_valid_q, fill_ready, fill_good;
  fetch_t fill_fetch;
  logic step_valid, written_valid, written_replaced, read_valid, read_good, victim_data_valid;
  cache_step_e step;
  id_t written_id, read_id;
  step_t pushed, head;
  logic push, head_valid, head_done, head_ready, victim_ready, victim_valid;
  logic [2:0] unused_room;
  logic [$clog2(Steps+1)-1:0] steps, unused_count;
  logic victim_sent_q, submit, submit_room, submits_victim;
  request_t request;
  origin_t origin, delivered_origin;
  logic deliverable, deliver, delivered, acked;
  response_t delivered_response, response_q;
  origin_t origin_q;
  line_t unused_line;
  control_t unused_control;
  why_e unused_why;

  // A flush: its walk goes before accesses.
  logic walks, drop;
  logic [PlaceBits-1:0] place;

  em_cxl_axi_slave #(
      .InFlight(InFlight)
  ) u_slave (
      .clk_i, .rst_ni, .axi_i, .axi_o,
      .access_valid_o(slave_valid), .access_ready_i(slave_ready), .access_op_o(slave_op),
      .access_line_o(slave_line), .access_id_o(access_id), .access_mask_o(access_mask),
      .access_data_o(access_data), .read_valid_i(read_valid), .read_id_i(read_id),
      .read_good_i(read_good), .read_data_i(read_data),
      .written_i(written_valid && !written_replaced), .written_id_i(written_id),
      .acked_i(acked && delivered_origin.waits), .acked_id_i(delivered_origin.id),
      .acked_good_i(delivered_response.status == StatusDone)
  );

  assign access_valid = walks || slave_valid;
  assign access_op    = walks ? OpClean : slave_op;
  assign access_line  = walks ? line_t'(place) : slave_line;
  assign slave_ready  = access_ready && !walks;

  em_cxl_cache #(
      .Sets   (Sets),
      .Fetches(Fetches)
  ) u_cache (
      .clk_i, .rst_ni, .access_valid_i(access_valid), .access_ready_o(access_ready),
      .access_op_i(access_op), .access_line_i(access_line), .access_id_i(access_id),
      .access_mask_i(access_mask), .access_data_i(access_data), .access_drop_i(drop),
      .range_first_i('0), .range_last_i('1), .room_i(room), .fill_valid_i(fill_valid_q),
      .fill_ready_o(fill_ready), .fill_fetch_i(fill_fetch), .fill_good_i(fill_good),
      .fill_data_i(response_q.data), .step_valid_o(step_valid), .step_op_o(step_op), .step_o(step),
      .step_id_o(step_id), .victim_valid_o(pushed.victim), .victim_line_o(pushed.victim_line),
      .victim_mask_o(pushed.victim_mask), .fetch_valid_o(pushed.fetch), .fetch_o(pushed.number),
      .fetch_line_o(pushed.line), .victim_data_valid_o(victim_data_valid),
      .victim_data_o(victim_data_in), .written_valid_o(written_valid), .written_id_o(written_id),
      .written_replaced_o(written_replaced), .read_valid_o(read_valid), .read_id_o(read_id),
      .read_good_o(read_good), .read_data_o(read_data)
  );

  assign pushed.waits = step_op == OpWrite;
  assign pushed.id    = step_id;
  assign push         = step_valid && (pushed.victim || pushed.fetch);
  // Three operations may be on their way to a step.
  assign room         = 32'(steps) + 4 <= Steps;

  em_fifo_sync #(
      .Width($bits(step_t)),
      .Depth(Steps)
  ) u_steps (
      .clk_i, .rst_ni, .valid_i(push), .ready_o(unused_room[0]), .data_i(pushed),
      .valid_o(head_valid), .ready_i(head_ready), .data_o(head), .count_o(steps)
  );

  em_fifo_sync #(
      .Width($bits(data_t)),
      .Depth(Steps)
  ) u_victims (
      .clk_i, .rst_ni, .valid_i(victim_data_valid), .ready_o(unused_room[1]),
      .data_i(victim_data_in), .valid_o(victim_valid), .ready_i(victim_ready),
      .data_o(victim_data), .count_o(unused_count)
  );

  assign submits_victim = head.victim && !victim_sent_q;
  assign submit         = head_valid && (!submits_victim || victim_valid);
  assign head_done      = !submits_victim || !head.fetch;
  assign head_ready     = submit && submit_room && head_done;
  assign victim_ready   = submit && submit_room && submits_victim;

  always_comb begin
    request      = '0;
    origin       = '0;
    request.data = victim_data;
    if (submits_victim) begin
      request.ask  = (&head.victim_mask) ? AskWrite : AskMaskedWrite;
      request.id   = head.id;
      request.line = head.victim_line;
      request.mask = head.victim_mask;
      origin.waits = head.waits;
      origin.id    = head.id;
    end else begin
      request.ask  = AskRead;
      request.id   = id_t'(head.number);
      request.line = head.line;
      origin.fetch = 1'b1;
      origin.id    = id_t'(head.number);
    end
  end

  em_cxl_compute_packets #(
      .Window     (Window),
      .Slots      (Slots),
      .Initial    (Initial),
      .RetryCycles(RetryCycles),
      .OriginBits ($bits(origin_t))
  ) u_packets (
      .clk_i, .rst_ni, .mac_i, .peer_i, .submit_i(submit), .room_o(submit_room),
      .request_i(request), .origin_i(origin), .deliverable_o(deliverable), .deliver_i(deliver),
      .delivered_o(delivered), .delivered_response_o(delivered_response),
      .delivered_line_o(unused_line), .delivered_origin_o(delivered_origin), .beat_valid_o,
      .beat_ready_i, .beat_o, .beat_valid_i, .beat_i, .error_i, .pfc_i, .control_o(unused_control),
      .sent_o(unused_room[2]), .sent_why_o(unused_why), .dropped_o
  );

  // A response leaves when there is a place for the line of a fetch.
  assign deliver    = deliverable && !delivered && !fill_valid_q;
  assign acked      = delivered && !delivered_origin.fetch;
  assign lost_o     = acked && delivered_response.status != StatusDone;
  assign fill_fetch = fetch_t'(origin_q.id);
  assign fill_good  = response_q.status == StatusDone;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {fill_valid_q, victim_sent_q} <= '0;
    end else begin
      if (delivered && delivered_origin.fetch) fill_valid_q <= 1'b1;
      else if (fill_ready) fill_valid_q <= 1'b0;
      if (submit && submit_room) victim_sent_q <= submits_victim && head.fetch;
    end
  end

  always_ff @(posedge clk_i) begin
    if (delivered) begin
      response_q <= delivered_response;
      origin_q   <= delivered_origin;
    end
  end

  em_cxl_clean #(
      .PlaceBits(PlaceBits)
  ) u_clean (
      .clk_i, .rst_ni, .clean_i, .clean_drop_i, .cleaned_o,
      .walks_o(walks), .place_o(place), .drop_o(drop), .taken_i(access_ready),
      .looked_i(step_valid && step_op == OpClean && step != StepStalled),
      .sent_i(push && pushed.victim), .acked_i(acked)
  );

endmodule
