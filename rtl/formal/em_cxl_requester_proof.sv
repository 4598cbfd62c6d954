/// em_cxl_requester delivers the response of each request once and in the order of the requests, as
/// it came first, whatever responses come, however often and in which order; and each request goes
/// out as it was taken, within the window.
///
/// By induction at a window of 2 in 4 slots. What is asserted of pointers and slots is what makes
/// the promise hold from any state that satisfies it. The proof follows one bit of one request and
/// one of its response; all others come as they like.
module em_cxl_requester_proof
  import em_cxl_pkg::*;
#(
    parameter int unsigned Window = 2,
    parameter int unsigned Slots = 4,
    localparam int unsigned SlotBits = $clog2(Slots)
) (
    input logic      clk_i,
    input cycles_t   now_i,
    input logic      submit_i,
    input logic      request_bit_i,
    input id_t       request_id_i,
    input logic      send_i,
    input logic      response_i,
    input sequence_t response_sequence_i,
    input id_t       response_id_i,
    input logic      response_bit_i,
    input logic      negative_i,
    input sequence_t nak_i,
    input sequence_t sack_i,
    input logic      tick_i,
    input logic      deliver_i,
    input sequence_t watched_i
);

  typedef logic [SlotBits-1:0] slot_t;

  logic rst_n = 1'b0;
  logic ready, room, sendable, sent, deliverable, delivered, origin;
  ask_e send_ask;
  sequence_t sent_sequence;
  request_t request, sent_request;
  response_t response, delivered_response;
  why_e sent_why;
  receipt_e receipt;
  line_t delivered_line;

  // The watched request: taken, its bit and identifier; answered first with this bit.
  sequence_t watched_q;
  logic taken_q = 1'b0, answered_q = 1'b0, bit_q, answer_q;
  id_t id_q;
  sequence_t submits_q = '0, deliveries_q = '0;
  logic past_q = 1'b0, delivers_q;

  always_comb begin
    request          = '0;
    request.ask      = AskRead;
    request.id       = request_id_i;
    request.data[0]  = request_bit_i;
    response         = '0;
    response.is_read = 1'b1;
    response.id      = response_id_i;
    response.data[0] = response_bit_i;
  end

  em_cxl_requester #(
      .Window    (Window),
      .Slots     (Slots),
      .OriginBits(1)
  ) u_dut (
      .clk_i,
      .rst_ni              (rst_n),
      .now_i,
      .ready_o             (ready),
      .submit_i,
      .room_o              (room),
      .request_i           (request),
      .origin_i            (request_bit_i),
      .sendable_o          (sendable),
      .send_ask_o          (send_ask),
      .send_i,
      .sent_o              (sent),
      .sent_sequence_o     (sent_sequence),
      .sent_request_o      (sent_request),
      .sent_why_o          (sent_why),
      .response_i,
      .response_sequence_i,
      .response_word_i     (response),
      .negative_i,
      .nak_i,
      .sack_i,
      .receipt_o           (receipt),
      .tick_i,
      .deliverable_o       (deliverable),
      .deliver_i,
      .delivered_o         (delivered),
      .delivered_response_o(delivered_response),
      .delivered_line_o    (delivered_line),
      .delivered_origin_o  (origin)
  );

  sequence_t oldest, unsent, next;
  logic [Slots-1:0] answered;
  assign oldest   = u_dut.oldest_q;
  assign unsent   = u_dut.unsent_q;
  assign next     = u_dut.next_q;
  assign answered = u_dut.answered_q;

  sequence_t at[Slots];
  always_comb begin
    for (int unsigned i = 0; i < Slots; i++) at[i] = oldest + sequence_t'(i);
  end

  logic holds, of_watched;
  slot_t slot;
  // The watched request was taken and not delivered.
  assign holds      = watched_q - oldest < next - oldest;
  assign slot       = slot_t'(watched_q);
  assign of_watched = response_i && response_sequence_i == watched_q;

  always_ff @(posedge clk_i) begin
    rst_n  <= 1'b1;
    past_q <= rst_n;
    if (!rst_n) watched_q <= watched_i;
    else begin
      if (submit_i && room) begin
        submits_q <= submits_q + 1'b1;
        if (next == watched_q) begin
          taken_q    <= 1'b1;
          answered_q <= 1'b0;
          bit_q      <= request_bit_i;
          id_q       <= request_id_i;
        end
      end
      if (deliver_i && deliverable) deliveries_q <= deliveries_q + 1'b1;
      delivers_q <= deliver_i && deliverable;
      if (ready && of_watched && receipt == ReceiptTaken) begin
        answered_q <= 1'b1;
        if (!answered_q) answer_q <= response_bit_i;
      end

      // Pointers in their order; they count what was taken and delivered.
      assert (unsent - oldest <= sequence_t'(Window) && next - oldest <= sequence_t'(Slots));
      assert (unsent - oldest <= next - oldest);
      assert (next == submits_q && oldest == deliveries_q);
      // Only what was sent is answered.
      for (int unsigned i = 0; i < Slots; i++) begin
        if (sequence_t'(i) >= unsent - oldest) assert (!answered[slot_t'(at[i])]);
      end
      // The buffers hold the watched request and its first response as they came.
      if (holds) begin
        assert (taken_q && answered[slot] == answered_q);
        assert (u_dut.u_requests.words_q[slot][0] == bit_q);
        assert (u_dut.u_origins.words_q[slot][LineBits] == bit_q);
        assert (u_dut.keys_q[slot].id == id_q);
        if (answered_q) assert (u_dut.u_responses.words_q[slot][0] == answer_q);
      end
      // A response is taken once, if it is of a request that was sent, and has its identifier.
      if (ready && of_watched && receipt == ReceiptTaken) begin
        assert (holds && response_id_i == id_q);
        assert (!answered_q);
      end
    end
    if (past_q) begin
      assert (delivered == delivers_q);
      if (delivered && deliveries_q - 1'b1 == watched_q) begin
        assert (answered_q && delivered_response.data[0] == answer_q && origin == bit_q);
      end
      if (sent && sent_sequence == watched_q) assert (sent_request.data[0] == bit_q);
    end
  end

endmodule
