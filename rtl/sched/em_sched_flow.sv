/// The messages of one source-destination pair and flow, first in, first out: X places, of which
/// the first shrinks by a chunk a grant and leaves with its last.
///
/// Only the head can be granted, so pair, flow and "head" name a message from the request to the
/// removal: an arrival in between goes behind it.
module em_sched_flow
  import em_sched_pkg::*;
#(
    /// Places: X.
    parameter int unsigned Depth = 3,
    parameter int unsigned TagWidth = 16,
    parameter int unsigned TimeWidth = 42,
    parameter int unsigned SlotCycles = 1,
    parameter int unsigned ChunkBytes = 256
) (
    input logic clk_i,
    input logic rst_ni,
    input rank_config_t config_i,
    input logic [TimeWidth-1:0] now_i,

    /// An end of the pair has failed: all that wait are forgotten.
    input logic clear_i,
    /// Ignored, and `refused_o` set, while all places are taken.
    input  logic                insert_i,
    input  bytes_t              insert_bytes_i,
    input  log_t                insert_log_i,
    input  logic [TagWidth-1:0] insert_tag_i,
    output logic                refused_o,

    /// The matched ports become busy: the head shrinks; the logarithm is that of what is left.
    input logic take_i,
    input log_t take_log_i,
    /// An iteration saw all that wait, and grants something.
    input logic seen_i,
    /// The end of an iteration: decides which messages are late in the next one.
    input logic mark_i,

    output logic                 valid_o,
    output rank_t                rank_o,
    output logic [TimeWidth-1:0] time_o,
    output logic [TagWidth-1:0]  tag_o,
    output bytes_t               remaining_o,
    output logic                 started_o,
    /// The first that was not granted yet: the head, or the one behind it.
    output logic                 unstarted_valid_o,
    output logic [TimeWidth-1:0] unstarted_time_o
);

  localparam int unsigned CountWidth = $clog2(Depth + 1);

  typedef struct packed {
    bytes_t               size;
    log_t                 size_log;
    logic [TimeWidth-1:0] arrival;
    logic [TagWidth-1:0]  tag;
    logic                 seen;
    logic [TimeWidth-1:0] late_from;
  } message_t;

  message_t messages_q[Depth];
  logic [CountWidth-1:0] count_q, left;
  bytes_t remaining_q;
  log_t remaining_log_q;
  logic started_q, late_q;
  logic last, pop, insert;
  message_t inserted;

  assign last      = remaining_q <= bytes_t'(ChunkBytes);
  assign pop       = take_i && last;
  assign left      = count_q - CountWidth'(pop);
  assign refused_o = insert_i && left == CountWidth'(Depth);
  assign insert    = insert_i && !refused_o;

  always_comb begin
    inserted          = '0;
    inserted.size     = insert_bytes_i;
    inserted.size_log = insert_log_i;
    inserted.arrival  = now_i;
    inserted.tag      = insert_tag_i;
  end

  /// Half again the time that it takes on the link.
  function automatic logic [TimeWidth-1:0] patience(bytes_t size);
    logic [TimeWidth-1:0] halves;
    halves = TimeWidth'(blocks_of(size)) * TimeWidth'(3 * SlotCycles);
    return (halves + 1'b1) >> 1;
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) count_q <= '0;
    else if (clear_i) count_q <= '0;
    else count_q <= left + CountWidth'(insert);
  end

  always_ff @(posedge clk_i) begin
    if (pop) begin
      for (int unsigned i = 0; i + 1 < Depth; i++) messages_q[i] <= messages_q[i+1];
    end
    if (insert) messages_q[left] <= inserted;
    // A message has a deadline only if it is large enough to be late; a pop is in another phase.
    if (seen_i && config_i.counts_late) begin
      for (int unsigned i = 0; i < Depth; i++) begin
        if (CountWidth'(i) < count_q && !messages_q[i].seen &&
            messages_q[i].size >= config_i.late_bytes_min) begin
          messages_q[i].seen <= 1'b1;
          messages_q[i].late_from <= now_i + TimeWidth'(CyclesPerIteration)
                                     + patience(messages_q[i].size);
        end
      end
    end
  end

  // The head's own state: what is left of it.
  message_t behind;
  assign behind = (Depth > 1) ? messages_q[Depth > 1 ? 1 : 0] : '0;

  always_ff @(posedge clk_i) begin
    if (pop && left != '0) begin
      remaining_q     <= behind.size;
      remaining_log_q <= behind.size_log;
    end else if (insert && left == '0) begin
      remaining_q     <= insert_bytes_i;
      remaining_log_q <= insert_log_i;
    end else if (take_i) begin
      remaining_q     <= remaining_q - bytes_t'(ChunkBytes);
      remaining_log_q <= take_log_i;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) started_q <= 1'b0;
    else if (clear_i) started_q <= 1'b0;
    else if (take_i) started_q <= !last;
  end

  logic head_late, head_seen;
  logic [TimeWidth-1:0] head_late_from;
  assign head_seen      = pop ? behind.seen : messages_q[0].seen;
  assign head_late_from = pop ? behind.late_from : messages_q[0].late_from;
  assign head_late      = left != '0 && head_seen && now_i + 1'b1 >= head_late_from;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) late_q <= 1'b0;
    else if (mark_i) late_q <= head_late;
  end

  always_comb begin
    logic [LogBits:0] weighted;
    weighted = {1'b0, remaining_log_q} + {1'b0, messages_q[0].size_log};
    if (late_q) begin
      weighted = (weighted > (LogBits + 1)'(LateBonus)) ? weighted - (LogBits + 1)'(LateBonus) : '0;
    end
    case (config_i.policy)
      PolicySrpt: rank_o = rank_t'(weighted);
      PolicySrptPublished: rank_o = remaining_q;
      default: rank_o = '0;
    endcase
  end

  assign valid_o           = count_q != '0;
  assign time_o            = messages_q[0].arrival;
  assign tag_o             = messages_q[0].tag;
  assign remaining_o       = remaining_q;
  assign started_o         = started_q;
  assign unstarted_valid_o = count_q > CountWidth'(started_q);
  assign unstarted_time_o  = started_q ? behind.arrival : messages_q[0].arrival;

endmodule
