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
    input  insert_t insert_i,
    output logic    refused_o,

    input take_t take_i,
    /// An iteration saw all that wait, and grants something.
    input logic seen_i,
    /// The end of an iteration: decides which messages are late in the next one.
    input logic mark_i,

    output head_t                head_o,
    output logic [TimeWidth-1:0] time_o,
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
  assign pop       = take_i.valid && last;
  assign left      = count_q - CountWidth'(pop);
  assign refused_o = insert_i.valid && left == CountWidth'(Depth);
  assign insert    = insert_i.valid && !refused_o;

  always_comb begin
    inserted          = '0;
    inserted.size     = insert_i.bytes;
    inserted.size_log = insert_i.size_log;
    inserted.arrival  = now_i;
    inserted.tag      = insert_i.tag[TagWidth-1:0];
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
      remaining_q     <= insert_i.bytes;
      remaining_log_q <= insert_i.size_log;
    end else if (take_i.valid) begin
      remaining_q     <= remaining_q - bytes_t'(ChunkBytes);
      remaining_log_q <= take_i.left_log;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) started_q <= 1'b0;
    else if (clear_i) started_q <= 1'b0;
    else if (take_i.valid) started_q <= !last;
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

  rank_t rank;
  always_comb begin
    logic [LogBits:0] weighted;
    weighted = {1'b0, remaining_log_q} + {1'b0, messages_q[0].size_log};
    if (late_q) begin
      weighted = (weighted > (LogBits + 1)'(LateBonus)) ? weighted - (LogBits + 1)'(LateBonus) : '0;
    end
    case (config_i.policy)
      PolicySrpt: rank = rank_t'(weighted);
      PolicySrptPublished: rank = remaining_q;
      default: rank = '0;
    endcase
  end

  assign head_o = '{
      valid: count_q != '0,
      rank: rank,
      tag: tag_t'(messages_q[0].tag),
      remaining: remaining_q,
      started: started_q
  };
  assign time_o            = messages_q[0].arrival;
  assign unstarted_valid_o = count_q > CountWidth'(started_q);
  assign unstarted_time_o  = started_q ? behind.arrival : messages_q[0].arrival;

endmodule
