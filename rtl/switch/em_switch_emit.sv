/// Sends the switch's own messages of a port in the order of their decisions: grants, released
/// requests, peer notices. The node answers in that order, and its circuits are in it.
///
/// A grant or request has a time before which it must not leave. A request waits for the chunks
/// that were in the egress before it, a notice for everything sent to its node before it.
module em_switch_emit
  import em_pkg::*;
  import em_link_pkg::*;
  import em_sched_pkg::left_t;
  import em_switch_pkg::*;
#(
    parameter int unsigned Depth = 32,
    parameter int unsigned MarkWidth = 10,
    /// Most cycles from the decision to the time.
    parameter int unsigned DelayMost = 64
) (
    input logic clk_i,
    input logic rst_ni,
    /// The port has failed: all is forgotten.
    input logic clear_i,

    /// A grant, or a request in its place, as its ports are marked busy. It may leave `delay`
    /// cycles later at the earliest, 1 at least, and later than the one before it.
    input  logic  grant_valid_i,
    input  word_t grant_i,
    input  left_t grant_delay_i,
    /// There is room for what is decided now.
    output logic  room_o,

    /// A word waits until no grant comes.
    input  logic  notice_valid_i,
    output logic  notice_ready_o,
    input  word_t notice_i,

    /// Chunks that began and that left, as counts that wrap.
    input logic [MarkWidth-1:0] opened_i,
    input logic [MarkWidth-1:0] left_i,

    output logic   valid_o,
    output logic   framed_o,
    output logic   last_o,
    output block_t block_o,
    input  logic   ready_i
);

  typedef struct packed {
    logic                 timed;
    logic                 marked;
    logic [MarkWidth-1:0] mark;
    word_t                word;
  } entry_t;

  localparam int unsigned CountWidth = $clog2(Depth + 1);
  localparam int unsigned DueWidth = $clog2(Depth + 8);

  entry_t pushed, head;
  logic push, push_ready, head_valid, pop, taken, passed, starts;
  logic [CountWidth-1:0] count;
  // A request was decided two cycles before it comes here, and stands behind the chunks of then.
  logic [MarkWidth-1:0] opened_q, opened_before_q;

  assign notice_ready_o = !grant_valid_i && push_ready;
  assign push           = grant_valid_i || notice_valid_i && push_ready;
  assign room_o         = count < CountWidth'(Depth - 2);

  always_comb begin
    pushed = '{timed: 1'b0, marked: 1'b1, mark: opened_i, word: notice_i};
    if (grant_valid_i) begin
      pushed = '{timed: 1'b1, marked: grant_i.request, mark: opened_before_q, word: grant_i};
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {opened_q, opened_before_q} <= '0;
    else if (clear_i) {opened_q, opened_before_q} <= '0;
    else {opened_q, opened_before_q} <= {opened_i, opened_q};
  end

  em_fifo_ram #(
      .Width($bits(entry_t)),
      .Depth(Depth)
  ) u_queue (
      .clk_i,
      .rst_ni,
      .clear_i,
      .valid_i(push),
      .ready_o(push_ready),
      .data_i (pushed),
      .valid_o(head_valid),
      .ready_i(pop),
      .data_o (head),
      .count_o(count)
  );

  // --- Times: how many of the timed entries in front may leave. Later ones never come due first.

  logic [DelayMost-1:0] coming_q, coming_d;
  logic [DueWidth-1:0] due_q;
  logic at_once;

  assign at_once = grant_valid_i && grant_delay_i <= left_t'(1);

  always_comb begin
    coming_d = coming_q >> 1;
    for (int unsigned i = 0; i < DelayMost; i++) begin
      if (grant_valid_i && grant_delay_i == left_t'(i + 2)) coming_d[i] = 1'b1;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {coming_q, due_q} <= '0;
    end else if (clear_i) begin
      {coming_q, due_q} <= '0;
    end else begin
      coming_q <= coming_d;
      due_q    <= due_q + DueWidth'(coming_q[0]) + DueWidth'(at_once) -
                  DueWidth'(pop && head.timed);
    end
  end

  // --- Blocks.

  typedef enum logic [1:0] {
    PlaceFirst,
    PlaceData,
    PlaceEnd
  } place_e;

  place_e place_q;
  logic [1:0] sent_q;
  logic [MarkWidth-1:0] ahead;

  assign ahead   = head.mark - left_i;
  // No chunk before it is left: the count has come to the mark, or gone by.
  assign passed  = !head.marked || ahead == '0 || ahead[MarkWidth-1];
  assign starts  = passed && (!head.timed || due_q != '0);
  assign valid_o = head_valid && (place_q != PlaceFirst || starts);
  assign framed_o = head.word.request;
  assign taken    = valid_o && ready_i;
  assign pop      = taken && last_o;

  always_comb begin
    last_o  = 1'b0;
    block_o = '{payload: head.word.first, header: SyncControl};
    unique case (place_q)
      PlaceData: block_o = '{payload: head.word.held.md[sent_q], header: SyncData};
      PlaceEnd: begin
        block_o = '{payload: head.word.held.mt, header: SyncControl};
        last_o  = 1'b1;
      end
      default: last_o = !head.word.request;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      place_q <= PlaceFirst;
      sent_q  <= '0;
    end else if (clear_i) begin
      place_q <= PlaceFirst;
      sent_q  <= '0;
    end else if (taken) begin
      unique case (place_q)
        PlaceFirst: begin
          sent_q <= '0;
          if (head.word.request) place_q <= (head.word.held.md_count == '0) ? PlaceEnd : PlaceData;
        end
        PlaceData: begin
          sent_q <= sent_q + 1'b1;
          if (sent_q + 1'b1 == head.word.held.md_count) place_q <= PlaceEnd;
        end
        default: place_q <= PlaceFirst;
      endcase
    end
  end

endmodule
