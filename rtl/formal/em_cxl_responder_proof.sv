/// em_cxl_responder executes each request once and in order, as it came, and sends each response
/// once and in order before it sends it again, as it was: nothing is lost, doubled or reordered,
/// whatever comes, however often and in which order.
///
/// By induction at a window of 4. What is asserted of pointers and places is what makes the promise
/// hold from any state that satisfies it. Copies of the watched request are alike in one bit that
/// the proof follows; others come as they like.
module em_cxl_responder_proof
  import em_cxl_pkg::*;
#(
    parameter int unsigned Window = 4,
    localparam int unsigned PlaceBits = $clog2(Window)
) (
    input logic                 clk_i,
    input logic                 request_valid_i,
    input sequence_t            request_sequence_i,
    input logic                 request_bit_i,
    input logic                 issue_i,
    input logic                 complete_i,
    input logic [PlaceBits-1:0] complete_place_i,
    input logic                 complete_bit_i,
    input logic                 poll_i,
    input sequence_t            watched_i,
    input logic                 watched_bit_i
);

  typedef logic [PlaceBits-1:0] place_t;
  localparam sequence_t Size = sequence_t'(Window);

  logic rst_n = 1'b0;
  logic request_ready, issuable, issued, poll_ready, response_valid, negative_valid;
  arrival_e arrival;
  place_t issued_place;
  request_t request, issued_request;
  response_t complete, response;
  sequence_t response_sequence, nak, sack;

  // The watched request, its bit, and that of its response once it has completed.
  sequence_t watched_q;
  logic watched_bit_q, answer_bit_q;
  logic [Window-1:0] executing_q = '0;
  sequence_t issues_q = '0, answers_q = '0;
  logic past_q = 1'b0, answered_q, was_issued_q;
  sequence_t issue_q;

  always_comb begin
    request           = '0;
    request.data[0]   = request_bit_i;
    complete          = '0;
    complete.data[0]  = complete_bit_i;
  end

  em_cxl_responder #(
      .Window(Window)
  ) u_dut (
      .clk_i,
      .rst_ni             (rst_n),
      .request_valid_i,
      .request_ready_o    (request_ready),
      .request_sequence_i,
      .request_i          (request),
      .arrival_o          (arrival),
      .issuable_o         (issuable),
      .issue_i,
      .issued_o           (issued),
      .issued_place_o     (issued_place),
      .issued_request_o   (issued_request),
      .complete_i,
      .complete_place_i,
      .complete_response_i(complete),
      .poll_i,
      .poll_ready_o       (poll_ready),
      .response_valid_o   (response_valid),
      .response_sequence_o(response_sequence),
      .response_o         (response),
      .negative_valid_o   (negative_valid),
      .nak_o              (nak),
      .sack_o             (sack)
  );

  sequence_t next, to_issue, to_answer;
  logic [Window-1:0] kept, done;
  assign next      = u_dut.next_q;
  assign to_issue  = u_dut.to_issue_q;
  assign to_answer = u_dut.to_answer_q;
  assign kept      = u_dut.kept_q;
  assign done      = u_dut.done_q;

  // The place of a sequence number from `to_answer` on, as a number from 0.
  sequence_t at[Window];
  always_comb begin
    for (int unsigned i = 0; i < Window; i++) at[i] = to_answer + sequence_t'(i);
  end

  logic watched_waits, watched_answer;
  assign watched_waits  = kept[place_t'(watched_q)]
                          && watched_q - to_issue < to_answer + Size - to_issue;
  assign watched_answer = done[place_t'(watched_q)] && watched_q - to_answer < Size;

  always_ff @(posedge clk_i) begin
    rst_n  <= 1'b1;
    past_q <= rst_n;
    if (!rst_n) begin
      watched_q     <= watched_i;
      watched_bit_q <= watched_bit_i;
    end else begin
      // The world: copies of a request are alike, and what is executed completes once.
      if (request_valid_i && request_sequence_i == watched_q) begin
        assume (request_bit_i == watched_bit_q);
      end
      if (complete_i) assume (executing_q[complete_place_i]);
      if (complete_i) executing_q[complete_place_i] <= 1'b0;
      if (issue_i && issuable) executing_q[place_t'(to_issue)] <= 1'b1;
      if (complete_i && complete_place_i == place_t'(watched_q)
          && watched_q - to_answer < Size) begin
        answer_bit_q <= complete_bit_i;
      end
      was_issued_q <= issue_i && issuable;
      issue_q      <= to_issue;
      answered_q   <= poll_i && poll_ready && done[place_t'(to_answer)] && to_answer != to_issue;
      if (issue_i && issuable) issues_q <= issues_q + 1'b1;
      if (poll_i && poll_ready && done[place_t'(to_answer)]) answers_q <= answers_q + 1'b1;

      // Pointers in their order, within the window; they count what was issued and answered.
      assert (next - to_answer <= Size && to_issue - to_answer <= next - to_answer);
      assert (to_issue == issues_q && to_answer == answers_q);
      // What is executed or answered is not kept, what waits to be executed is; and no other.
      for (int unsigned i = 0; i < Window; i++) begin
        if (sequence_t'(i) < to_issue - to_answer) begin
          assert (!kept[place_t'(at[i])]);
          assert (done[place_t'(at[i])] != executing_q[place_t'(at[i])]);
        end else begin
          assert (!done[place_t'(at[i])] && !executing_q[place_t'(at[i])]);
          if (sequence_t'(i) < next - to_answer) assert (kept[place_t'(at[i])]);
        end
      end
      // The buffers hold the watched request and its response as they came.
      if (watched_waits) assert (u_dut.u_requests.words_q[place_t'(watched_q)][0] == watched_bit_q);
      if (watched_answer) begin
        assert (u_dut.u_responses.words_q[place_t'(watched_q)][0] == answer_bit_q);
      end
    end
    if (past_q) begin
      // In order, each once, as it came.
      assert (issued == was_issued_q);
      if (issued) begin
        assert (issued_place == place_t'(issue_q) && issue_q == issues_q - 1'b1);
        if (issue_q == watched_q) assert (issued_request.data[0] == watched_bit_q);
      end
      // A response in order goes at the first poll after its request has completed.
      if (answered_q) begin
        assert (response_valid && response_sequence == answers_q - 1'b1);
        if (response_sequence == watched_q) assert (response.data[0] == answer_bit_q);
      end
      // A SACK + NAK names what is missing, and something behind it.
      if (negative_valid) begin
        assert (sack != nak && !(sack - nak >= {1'b1, {(SequenceBits - 1) {1'b0}}}));
      end
      // What never came is not executed: a request is taken as next, or kept behind it.
      if (request_valid_i && request_ready && arrival == ArrivalNext) begin
        assert (request_sequence_i == next);
      end
      if (request_valid_i && arrival == ArrivalKept) begin
        assert (request_sequence_i - next < Size && request_sequence_i != next);
      end
    end
  end

endmodule
