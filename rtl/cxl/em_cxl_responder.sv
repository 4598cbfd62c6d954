/// The memory node's side of retransmission (section III.D): requests in order, each executed once,
/// and responses until they are known to have come; step for step what `Responder` of crates/cxl
/// does. The reorder buffer of requests and the retry buffer of responses are RAMs, indexed by the
/// sequence number modulo the window.
///
/// Each cycle takes at most one poll, one issue, one completion and one arrival, in this order: a
/// later one sees what the earlier ones did. Words of the RAMs are there in the next cycle.
module em_cxl_responder
  import em_cxl_pkg::*;
#(
    /// Requests between the oldest without its response and the newest: a power of two, 2 to 2^15.
    parameter int unsigned Window = 512,
    parameter sequence_t   Initial = '0,
    /// All from the first that is missing is sent again; what comes out of order is dropped.
    parameter bit          GoBackN = 1'b0,
    localparam int unsigned PlaceBits = $clog2(Window)
) (
    input logic clk_i,
    input logic rst_ni,

    /// A request has come; what became of it is there in the same cycle. Requests that were kept
    /// come into order one a cycle, and nothing is taken meanwhile.
    input  logic      request_valid_i,
    output logic      request_ready_o,
    input  sequence_t request_sequence_i,
    input  request_t  request_i,
    output arrival_e  arrival_o,

    /// The next request in order is executed, once and for all.
    output logic                 issuable_o,
    input  logic                 issue_i,
    /// In the next cycle: the request, and the place under which it completes.
    output logic                 issued_o,
    output logic [PlaceBits-1:0] issued_place_o,
    output request_t             issued_request_o,

    /// A request was executed; requests complete in any order.
    input logic                 complete_i,
    input logic [PlaceBits-1:0] complete_place_i,
    input response_t            complete_response_i,

    /// A packet may be sent: taken while `poll_ready_o`, and there in the next cycle, if any is: a
    /// response, a SACK + NAK, or both.
    input  logic      poll_i,
    output logic      poll_ready_o,
    output logic      response_valid_o,
    output sequence_t response_sequence_o,
    output response_t response_o,
    output logic      negative_valid_o,
    output sequence_t nak_o,
    output sequence_t sack_o
);

  typedef logic [Window-1:0] places_t;
  typedef logic [PlaceBits-1:0] place_t;
  localparam sequence_t Size = sequence_t'(Window);

  // `to_answer <= to_issue <= next`: before them, responses were sent, requests were executed or
  // are being executed, and requests have come in order.
  sequence_t next_q, to_issue_q, to_answer_q, next_d, to_issue_d, to_answer_d;
  // By place: a request is here; its SACK waits; a response is here and was not sent yet; one was
  // sent ever; one waits to be sent again.
  places_t kept_q, sacking_q, done_q, sent_q, again_q;
  places_t kept_d, sacking_d, done_d, sent_d, again_d;
  logic nak_sent_q, nak_sent_d;

  logic sack_push, sack_room, sack_valid, sack_pop, sack_stale;
  logic again_push, again_room, again_valid, again_pop, again_stale;
  sequence_t sack, again;
  logic advances, polls, issues, arrives, answers, repeats, negates, takes, sacks;
  arrival_e arrival;

  /// `later` is after `earlier`, on the circle of sequence numbers.
  function automatic logic after(sequence_t later, sequence_t earlier);
    sequence_t distance;
    distance = later - earlier;
    return distance != '0 && !distance[SequenceBits-1];
  endfunction

  // The request behind those that are in order was kept.
  assign advances = kept_q[place_t'(next_q)] && next_q - to_answer_q < Size;

  // What waits to be sent again was overwritten by a response a window later: it was received.
  assign again_stale = again_valid && (to_answer_q - again > Size || done_q[place_t'(again)]);
  // Nothing before it is missing any more.
  assign sack_stale  = sack_valid && !after(sack, next_q);

  assign poll_ready_o    = !advances && !again_stale && !sack_stale;
  assign request_ready_o = !advances;
  assign issuable_o      = to_issue_q != next_q;
  assign polls           = poll_i && poll_ready_o;
  assign issues          = issue_i && issuable_o;
  assign arrives         = request_valid_i && request_ready_o;

  // A response in order goes first, then one again; a SACK + NAK goes with either, or alone.
  assign answers = polls && done_q[place_t'(to_answer_q)] && to_answer_q != to_issue_q;
  assign repeats = polls && !answers && again_valid;
  assign negates = polls && sack_valid;

  assign again_pop = again_stale || repeats;
  assign sack_pop  = sack_stale || negates;

  always_comb begin
    next_d      = next_q;
    to_issue_d  = to_issue_q;
    to_answer_d = to_answer_q;
    kept_d      = kept_q;
    sacking_d   = sacking_q;
    done_d      = done_q;
    sent_d      = sent_q;
    again_d     = again_q;
    nak_sent_d  = nak_sent_q;
    sack_push   = 1'b0;
    again_push  = 1'b0;
    takes       = 1'b0;
    sacks       = 1'b0;
    arrival     = ArrivalOutsideWindow;

    if (advances) next_d = next_q + 1'b1;

    // Poll.
    if (answers) begin
      to_answer_d                = to_answer_q + 1'b1;
      done_d[place_t'(to_answer_q)] = 1'b0;
      sent_d[place_t'(to_answer_q)] = 1'b1;
    end
    if (repeats) again_d[place_t'(again)] = 1'b0;
    if (negates) sacking_d[place_t'(sack)] = 1'b0;

    // Issue.
    if (issues) begin
      to_issue_d                = to_issue_q + 1'b1;
      kept_d[place_t'(to_issue_q)] = 1'b0;
    end

    // Completion.
    if (complete_i) begin
      done_d[complete_place_i]  = 1'b1;
      again_d[complete_place_i] = 1'b0;
    end

    // Arrival.
    if (request_sequence_i - to_answer_d < Size) begin
      if (next_q != request_sequence_i && !after(request_sequence_i, next_q)) begin
        arrival = ArrivalDuplicate;
      end else if (next_q == request_sequence_i) begin
        arrival = ArrivalNext;
        takes   = 1'b1;
        if (arrives) begin
          next_d     = next_q + 1'b1;
          nak_sent_d = 1'b0;
          kept_d[place_t'(request_sequence_i)]    = 1'b1;
          sacking_d[place_t'(request_sequence_i)] = 1'b0;
        end
      end else if (GoBackN) begin
        arrival   = ArrivalDropped;
        sack_push = arrives && !nak_sent_q && sack_room;
        if (sack_push) nak_sent_d = 1'b1;
      end else begin
        // One that comes again though it is here: its SACK was lost.
        arrival = kept_d[place_t'(request_sequence_i)] ? ArrivalDuplicate : ArrivalKept;
        takes   = 1'b1;
        if (arrives) begin
          sacks     = kept_d[place_t'(request_sequence_i)]
                      && sacking_d[place_t'(request_sequence_i)];
          sack_push = sack_room && !sacks;
          sacking_d[place_t'(request_sequence_i)] = sack_push || sacks;
          kept_d[place_t'(request_sequence_i)]    = 1'b1;
        end
      end
    end else if (to_answer_d - request_sequence_i <= Size) begin
      if (sent_d[place_t'(request_sequence_i)] && !done_d[place_t'(request_sequence_i)]) begin
        arrival    = ArrivalAnswered;
        again_push = arrives && !again_d[place_t'(request_sequence_i)] && again_room;
        if (arrives) again_d[place_t'(request_sequence_i)] = 1'b1;
      end
    end
  end

  assign arrival_o = arrival;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {kept_q, sacking_q, done_q, sent_q, again_q, nak_sent_q} <= '0;
      next_q      <= Initial;
      to_issue_q  <= Initial;
      to_answer_q <= Initial;
    end else begin
      next_q      <= next_d;
      to_issue_q  <= to_issue_d;
      to_answer_q <= to_answer_d;
      kept_q      <= kept_d;
      sacking_q   <= sacking_d;
      done_q      <= done_d;
      sent_q      <= sent_d;
      again_q     <= again_d;
      nak_sent_q  <= nak_sent_d;
    end
  end

  logic [PlaceBits:0] unused_sacks, unused_agains;

  em_fifo_sync #(
      .Width(SequenceBits),
      .Depth(Window)
  ) u_sacks (
      .clk_i,
      .rst_ni,
      .valid_i(sack_push),
      .ready_o(sack_room),
      .data_i (request_sequence_i),
      .valid_o(sack_valid),
      .ready_i(sack_pop),
      .data_o (sack),
      .count_o(unused_sacks)
  );

  em_fifo_sync #(
      .Width(SequenceBits),
      .Depth(Window)
  ) u_agains (
      .clk_i,
      .rst_ni,
      .valid_i(again_push),
      .ready_o(again_room),
      .data_i (request_sequence_i),
      .valid_o(again_valid),
      .ready_i(again_pop),
      .data_o (again),
      .count_o(unused_agains)
  );

  em_ram #(
      .Width($bits(request_t)),
      .Depth(Window)
  ) u_requests (
      .clk_i,
      .write_i        (arrives && takes),
      .write_address_i(place_t'(request_sequence_i)),
      .write_data_i   (request_i),
      .read_i         (issues),
      .read_address_i (place_t'(to_issue_q)),
      .read_data_o    (issued_request_o)
  );

  em_ram #(
      .Width($bits(response_t)),
      .Depth(Window)
  ) u_responses (
      .clk_i,
      .write_i        (complete_i),
      .write_address_i(complete_place_i),
      .write_data_i   (complete_response_i),
      .read_i         (answers || repeats),
      .read_address_i (answers ? place_t'(to_answer_q) : place_t'(again)),
      .read_data_o    (response_o)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {issued_o, response_valid_o, negative_valid_o} <= '0;
    else begin
      issued_o         <= issues;
      response_valid_o <= answers || repeats;
      negative_valid_o <= negates;
    end
  end

  always_ff @(posedge clk_i) begin
    issued_place_o      <= place_t'(to_issue_q);
    response_sequence_o <= answers ? to_answer_q : again;
    nak_o               <= next_q;
    sack_o              <= sack;
  end

endmodule
