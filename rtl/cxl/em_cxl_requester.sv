/// The compute node's side of retransmission (section III.D): requests until their responses have
/// come, which are delivered in order; step for step what `Requester` of crates/cxl does. The retry
/// buffer of requests and the reorder buffer of responses are RAMs, indexed by the sequence number.
///
/// Each cycle takes at most one packet to send, one delivery, one new request, and one of response,
/// SACK + NAK and tick, in this order: a later one sees what the earlier ones did. A walk over the
/// slots, one a cycle, finds what must be sent again, and nothing is taken meanwhile.
module em_cxl_requester
  import em_cxl_pkg::*;
#(
    /// Requests that are sent and not answered, and slots for these and for those that wait: a
    /// power of two, at most 2^15.
    parameter int unsigned Window = 512,
    parameter int unsigned Slots = 1024,
    parameter sequence_t   Initial = '0,
    /// All from the first that is missing is sent again.
    parameter bit          GoBackN = 1'b0,
    /// Doubled with each try, up to 32 times as long: 20 us at 250 MHz.
    parameter int unsigned RetryCycles = 5_000,
    /// Bits that come back with a response.
    parameter int unsigned OriginBits = 8
) (
    input logic clk_i,
    input logic rst_ni,
    /// Goes round; no request waits for half of the circle.
    input cycles_t now_i,

    /// A walk is over, and all but `room_o` holds.
    output logic ready_o,

    /// Requests are executed in the order in which they are taken.
    input  logic                  submit_i,
    output logic                  room_o,
    input  request_t              request_i,
    input  logic [OriginBits-1:0] origin_i,

    /// A packet waits, of this kind. In the cycle behind `send_i` it is there, and why.
    output logic      sendable_o,
    output ask_e      send_ask_o,
    input  logic      send_i,
    output logic      sent_o,
    output sequence_t sent_sequence_o,
    output request_t  sent_request_o,
    output why_e      sent_why_o,

    /// A response, or a SACK + NAK; what becomes of it is there in the same cycle.
    input  logic      response_i,
    input  sequence_t response_sequence_i,
    input  response_t response_word_i,
    input  logic      negative_i,
    input  sequence_t nak_i,
    input  sequence_t sack_i,
    output receipt_e  receipt_o,

    /// Sends again what has waited for too long, if the oldest has. Not taken beside a packet to
    /// send, a response or a SACK + NAK.
    input logic tick_i,

    /// The oldest request has its response. In the cycle behind `deliver_i` it is there.
    output logic                  deliverable_o,
    input  logic                  deliver_i,
    output logic                  delivered_o,
    output response_t             delivered_response_o,
    output line_t                 delivered_line_o,
    output logic [OriginBits-1:0] delivered_origin_o
);

  localparam int unsigned SlotBits = $clog2(Slots);
  typedef logic [Slots-1:0] slots_t;
  typedef logic [SlotBits-1:0] slot_t;

  // Not delivered from `oldest` on, never sent from `unsent` on; `acked` is behind the newest
  // request that has a response.
  sequence_t oldest_q, unsent_q, next_q, acked_q, oldest_d, unsent_d, next_d, acked_d;
  slots_t answered_q, sacked_q, resending_q, answered_d, sacked_d, resending_d;
  logic went_back_q, went_back_d;
  sequence_t went_back_to_q, went_back_to_d;
  walk_e walk_q, walk_d;
  why_e why_q, why_d, reasons_q[Slots];
  // A walk goes from here to the end; back to the NAK first.
  sequence_t at_q, at_d, end_q, end_d, nak_q, nak_d;
  key_t keys_q[Slots];
  try_t tries_q[Slots], looked, next_try;

  logic resend_push, resend_room, resend_valid, resend_pop, resend_stale;
  sequence_t resend, sending, previous, oldest_left;
  logic sends, sends_new, delivers, submits, receives, ticks, stores, is_due;
  receipt_e receipt;
  key_t key;

  // Its response has come meanwhile.
  assign resend_stale = resend_valid && (resend - oldest_q >= next_q - oldest_q
                                         || answered_q[slot_t'(resend)]);
  assign sends_new     = unsent_q != next_q && unsent_q - oldest_q < sequence_t'(Window);
  assign ready_o       = walk_q == WalkNone && !resend_stale;
  assign sendable_o    = ready_o && (resend_valid || sends_new);
  assign sending       = resend_valid ? resend : unsent_q;
  assign send_ask_o    = keys_q[slot_t'(sending)].ask;
  assign deliverable_o = ready_o && oldest_q != unsent_q && answered_q[slot_t'(oldest_q)];
  assign room_o        = ready_o && next_q - oldest_q < sequence_t'(Slots);
  assign sends         = send_i && sendable_o;
  assign delivers      = deliver_i && deliverable_o;
  assign submits       = submit_i && room_o;
  assign receives      = ready_o && (response_i || negative_i);
  assign ticks         = tick_i && ready_o && !send_i && !response_i && !negative_i;
  assign resend_pop    = resend_stale || (sends && resend_valid);
  assign key           = keys_q[slot_t'(response_sequence_i)];

  // The last try of the oldest request, or of the one that a walk has reached.
  assign oldest_left = oldest_q + sequence_t'(delivers);
  assign looked      = tries_q[slot_t'((walk_q == WalkNone) ? oldest_left : at_q)];
  assign is_due      = now_i - looked.at >= (cycles_t'(RetryCycles) << looked.doublings);
  assign previous    = at_q - 1'b1;

  always_comb begin
    oldest_d       = oldest_left;
    unsent_d       = unsent_q;
    next_d         = next_q;
    acked_d        = acked_q;
    answered_d     = answered_q;
    sacked_d       = sacked_q;
    resending_d    = resending_q;
    went_back_d    = went_back_q;
    went_back_to_d = went_back_to_q;
    walk_d         = walk_q;
    why_d          = why_q;
    at_d           = at_q;
    end_d          = end_q;
    nak_d          = nak_q;
    resend_push    = 1'b0;
    stores         = 1'b0;
    receipt        = ReceiptTaken;

    if (sends) begin
      resending_d[slot_t'(sending)] = 1'b0;
      if (!resend_valid) unsent_d = unsent_q + 1'b1;
    end
    if (delivers) answered_d[slot_t'(oldest_q)] = 1'b0;
    if (submits) begin
      next_d                       = next_q + 1'b1;
      answered_d[slot_t'(next_q)]  = 1'b0;
      sacked_d[slot_t'(next_q)]    = 1'b0;
      resending_d[slot_t'(next_q)] = 1'b0;
    end

    // What has come must be of a request that is under way.
    if ((response_i ? response_sequence_i : sack_i) - oldest_d >= unsent_d - oldest_d) begin
      receipt = ReceiptOutsideWindow;
    end else if (response_i) begin
      if (key.id != response_word_i.id || (key.ask == AskRead) != response_word_i.is_read) begin
        receipt = ReceiptMismatch;
      end else if (answered_d[slot_t'(response_sequence_i)]) begin
        receipt = ReceiptDuplicate;
      end else if (receives && GoBackN && response_sequence_i != acked_q) begin
        // Once for each gap.
        if (!went_back_q || went_back_to_q != acked_q) begin
          went_back_d    = 1'b1;
          went_back_to_d = acked_q;
          walk_d         = WalkForward;
          why_d          = WhyGap;
          at_d           = acked_q;
          end_d          = unsent_d;
        end
      end else if (receives) begin
        stores                                   = 1'b1;
        answered_d[slot_t'(response_sequence_i)] = 1'b1;
        // Responses between it and the one before it were lost.
        if (!is_after(acked_q, response_sequence_i)) begin
          acked_d = response_sequence_i + 1'b1;
          walk_d  = (response_sequence_i == acked_q) ? WalkNone : WalkForward;
          why_d   = WhyGap;
          at_d    = acked_q;
          end_d   = response_sequence_i;
        end
      end
    end else if (receives) begin
      // All before the NAK has arrived; what was delivered since needs no look.
      nak_d  = is_after(oldest_d, nak_i) ? oldest_d : nak_i;
      why_d  = WhyNegative;
      at_d   = GoBackN ? nak_d : sack_i;
      end_d  = GoBackN ? unsent_d : sack_i;
      walk_d = GoBackN ? WalkForward : WalkBack;
      if (!GoBackN) sacked_d[slot_t'(sack_i)] = 1'b1;
    end

    if (ticks && oldest_d != unsent_d && !answered_d[slot_t'(oldest_d)]
        && !resending_d[slot_t'(oldest_d)] && is_due) begin
      walk_d = WalkForward;
      why_d  = WhyTimeout;
      at_d   = oldest_d;
      end_d  = unsent_d;
    end

    case (walk_q)
      WalkBack: begin
        if (is_after(at_q, nak_q) && !sacked_q[slot_t'(previous)]) at_d = previous;
        else walk_d = WalkForward;
      end
      WalkForward: begin
        if (is_after(end_q, at_q)) begin
          at_d        = at_q + 1'b1;
          resend_push = !answered_q[slot_t'(at_q)] && !resending_q[slot_t'(at_q)]
                        && (why_q != WhyTimeout || is_due);
          if (resend_push) resending_d[slot_t'(at_q)] = 1'b1;
        end else walk_d = WalkNone;
      end
      default: ;
    endcase
  end

  assign receipt_o = receipt;

  // The first try is not doubled.
  always_comb begin
    next_try.at        = now_i;
    next_try.doublings = '0;
    if (resend_valid) begin
      next_try.doublings = tries_q[slot_t'(sending)].doublings;
      if (next_try.doublings != DoublingsMax) next_try.doublings = next_try.doublings + 1'b1;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {answered_q, sacked_q, resending_q, went_back_q} <= '0;
      {oldest_q, unsent_q, next_q, acked_q} <= {4{Initial}};
      walk_q   <= WalkNone;
    end else begin
      answered_q  <= answered_d;
      sacked_q    <= sacked_d;
      resending_q <= resending_d;
      went_back_q <= went_back_d;
      {oldest_q, unsent_q, next_q, acked_q} <= {oldest_d, unsent_d, next_d, acked_d};
      walk_q      <= walk_d;
    end
  end

  always_ff @(posedge clk_i) begin
    went_back_to_q <= went_back_to_d;
    why_q          <= why_d;
    at_q           <= at_d;
    end_q          <= end_d;
    nak_q          <= nak_d;
    if (submits) keys_q[slot_t'(next_q)] <= '{ask: request_i.ask, id: request_i.id};
    if (sends) tries_q[slot_t'(sending)] <= next_try;
    if (resend_push) reasons_q[slot_t'(at_q)] <= why_q;
  end

  logic [SlotBits:0] unused_count;
  logic unused_room;
  assign unused_room = resend_room;

  em_fifo_sync #(
      .Width(SequenceBits),
      .Depth(Slots)
  ) u_resends (
      .clk_i, .rst_ni, .valid_i(resend_push), .ready_o(resend_room), .data_i(at_q),
      .valid_o(resend_valid), .ready_i(resend_pop), .data_o(resend), .count_o(unused_count)
  );

  em_ram #(
      .Width($bits(request_t)),
      .Depth(Slots)
  ) u_requests (
      .clk_i, .write_i(submits), .write_address_i(slot_t'(next_q)), .write_data_i(request_i),
      .read_i(sends), .read_address_i(slot_t'(sending)), .read_data_o(sent_request_o)
  );

  em_ram #(
      .Width($bits(response_t)),
      .Depth(Slots)
  ) u_responses (
      .clk_i, .write_i(stores), .write_address_i(slot_t'(response_sequence_i)),
      .write_data_i(response_word_i), .read_i(delivers), .read_address_i(slot_t'(oldest_q)),
      .read_data_o(delivered_response_o)
  );

  em_ram #(
      .Width(OriginBits + LineBits),
      .Depth(Slots)
  ) u_origins (
      .clk_i, .write_i(submits), .write_address_i(slot_t'(next_q)),
      .write_data_i({origin_i, request_i.line}), .read_i(delivers),
      .read_address_i(slot_t'(oldest_q)), .read_data_o({delivered_origin_o, delivered_line_o})
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {sent_o, delivered_o} <= '0;
    else begin
      sent_o      <= sends;
      delivered_o <= delivers;
    end
  end

  always_ff @(posedge clk_i) begin
    sent_sequence_o <= sending;
    sent_why_o      <= resend_valid ? reasons_q[slot_t'(sending)] : WhyFirst;
  end

endmodule
