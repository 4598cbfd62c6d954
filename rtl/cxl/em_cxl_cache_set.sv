/// Decides what one operation does to a set of the cache. Combinational, and the one place in which
/// lines are placed, replaced and freed (section III.B).
///
/// A line is in one way. A dirty byte leaves a way only in `victim`: its line and mask name exactly
/// the dirty bytes that the set had and has no more.
module em_cxl_cache_set
  import em_cxl_pkg::*;
(
    input cache_op_e op_i,
    /// Of a read or write.
    input line_t      line_i,
    /// Of all others.
    input way_index_t way_i,
    /// Bytes of a write.
    input mask_t      mask_i,
    /// A line that is cleaned also leaves the cache.
    input logic       drop_i,
    /// Lines that are cleaned; both ends included.
    input line_t      range_first_i,
    input line_t      range_last_i,
    /// A fill brings the line; otherwise it only ends the fetch.
    input logic       good_i,
    /// No more lines can be fetched; else the number of the next fetch.
    input logic       fetches_full_i,
    input fetch_t     fetch_i,

    input  set_t set_i,
    output set_t set_o,

    output cache_step_e step_o,
    output way_index_t  way_o,
    /// The fetch that a read joins.
    output fetch_t      joined_o,
    /// Valid bytes before the operation, and whether all are valid behind it.
    output mask_t       valid_o,
    output logic        whole_o,
    output logic        victim_o,
    output line_t       victim_line_o,
    output mask_t       victim_mask_o
);

  logic [Ways-1:0] match, free, idle, oldest, pick;
  logic found, room, touch, in_range;
  way_t at, after;

  always_comb begin
    for (int unsigned w = 0; w < Ways; w++) begin
      match[w] = set_i[w].present && set_i[w].line == line_i;
      free[w]  = !set_i[w].present;
      idle[w]  = !set_i[w].fetching;
    end
    for (int unsigned w = 0; w < Ways; w++) begin
      oldest[w] = idle[w];
      for (int unsigned v = 0; v < Ways; v++) begin
        if (idle[v] && set_i[v].age > set_i[w].age) oldest[w] = 1'b0;
      end
    end
  end

  assign found = |match;

  // One way: named, or that of the line, or the lowest free one, or the least recently used one
  // without a fetch; none if all ways are fetched.
  always_comb begin
    if (op_i != OpRead && op_i != OpWrite) pick = Ways'(1) << way_i;
    else if (found) pick = match;
    else if (|free) pick = free & (~free + 1'b1);
    else pick = oldest;
  end

  assign room = |pick;

  always_comb begin
    at    = '0;
    way_o = '0;
    for (int unsigned w = 0; w < Ways; w++) begin
      if (pick[w]) begin
        at |= set_i[w];
        way_o |= way_index_t'(w);
      end
    end
  end

  assign in_range      = at.present && at.line >= range_first_i && at.line <= range_last_i;
  assign joined_o      = at.fetch;
  assign valid_o       = at.valid;
  assign whole_o       = &after.valid;
  assign victim_line_o = at.line;
  assign victim_mask_o = at.dirty;

  always_comb begin
    after    = at;
    step_o   = StepStalled;
    touch    = 1'b0;
    victim_o = 1'b0;
    // A new line has no valid byte.
    if ((op_i == OpRead || op_i == OpWrite) && !found) begin
      after.present = 1'b1;
      after.line    = line_i;
      after.valid   = '0;
      after.dirty   = '0;
      victim_o      = at.present && |at.dirty;
    end
    case (op_i)
      OpRead: begin
        touch = 1'b1;
        if (found && &at.valid) step_o = StepHit;
        else if (found && at.fetching) step_o = StepMerged;
        else if (room && !fetches_full_i) begin
          step_o         = StepMiss;
          after.fetching = 1'b1;
          after.fetch    = fetch_i;
        end
      end
      OpWrite: begin
        touch = 1'b1;
        after.valid |= mask_i;
        after.dirty |= mask_i;
        if (found) step_o = StepHit;
        else if (room) step_o = victim_o ? StepReplaced : StepAllocated;
      end
      OpClean: begin
        if (!in_range) step_o = StepKept;
        else if (!drop_i || !at.fetching) begin
          step_o      = StepCleaned;
          victim_o    = |at.dirty;
          after.dirty = '0;
          if (drop_i) begin
            after.present = 1'b0;
            after.valid   = '0;
          end
        end
      end
      OpFill: begin
        step_o         = StepFilled;
        after.fetching = 1'b0;
        if (good_i) after.valid = '1;
        else after.present = |at.valid;
      end
      default: step_o = StepFilled;
    endcase
    if (step_o == StepStalled) victim_o = 1'b0;
  end

  always_comb begin
    set_o = set_i;
    if (step_o != StepStalled) begin
      for (int unsigned w = 0; w < Ways; w++) begin
        if (pick[w]) set_o[w] = after;
        if (touch) begin
          if (pick[w]) set_o[w].age = '0;
          else if (set_i[w].age < at.age) set_o[w].age = set_i[w].age + 1'b1;
        end
      end
    end
  end

endmodule
