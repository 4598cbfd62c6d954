/// em_cxl_cache_set keeps a line in one way, and drops no dirty byte: each one stays in the set or
/// is in the victim, under its line.
///
/// One step from any set that the invariants allow, whole: they hold for an empty set and, after
/// any operation, again. So they hold for ever.
module em_cxl_cache_set_proof
  import em_cxl_pkg::*;
(
    input logic       clk_i,
    input cache_op_e  op_i,
    input line_t      line_i,
    input way_index_t way_i,
    input mask_t      mask_i,
    input logic       drop_i,
    input line_t      range_first_i,
    input line_t      range_last_i,
    input logic       good_i,
    input logic       fetches_full_i,
    input fetch_t     fetch_i,
    input set_t       set_i,
    /// Any byte of any way.
    input way_index_t watched_way_i,
    input logic [5:0] watched_byte_i
);

  set_t after;
  cache_step_e step;
  way_index_t way;
  fetch_t joined;
  mask_t valid, victim_mask;
  line_t victim_line;
  logic whole, victim;

  em_cxl_cache_set u_dut (
      .op_i,
      .line_i,
      .way_i,
      .mask_i,
      .drop_i,
      .range_first_i,
      .range_last_i,
      .good_i,
      .fetches_full_i,
      .fetch_i,
      .set_i,
      .set_o        (after),
      .step_o       (step),
      .way_o        (way),
      .joined_o     (joined),
      .valid_o      (valid),
      .whole_o      (whole),
      .victim_o     (victim),
      .victim_line_o(victim_line),
      .victim_mask_o(victim_mask)
  );

  function automatic logic holds(set_t set);
    holds = 1'b1;
    for (int unsigned w = 0; w < Ways; w++) begin
      if ((set[w].dirty & ~set[w].valid) != '0) holds = 1'b0;
      if (!set[w].present && (set[w].valid != '0 || set[w].fetching)) holds = 1'b0;
      for (int unsigned v = 0; v < w; v++) begin
        if (set[w].present && set[v].present && set[w].line == set[v].line) holds = 1'b0;
        if (set[w].age == set[v].age) holds = 1'b0;
      end
    end
  endfunction

  set_t empty;
  way_t watched;
  logic is_fill, stays, is_placed, was_there;
  assign watched = set_i[watched_way_i];
  assign is_fill = op_i == OpFill;

  always_comb begin
    stays     = 1'b0;
    is_placed = 1'b0;
    was_there = 1'b0;
    empty     = '0;
    for (int unsigned w = 0; w < Ways; w++) begin
      empty[w].age = way_index_t'(w);
      if (after[w].present && after[w].line == watched.line && after[w].dirty[watched_byte_i]) begin
        stays = 1'b1;
      end
      if (after[w].present && after[w].line == line_i && after[w].age == '0
          && way == way_index_t'(w) && (after[w].dirty & mask_i) == mask_i) begin
        is_placed = 1'b1;
      end
      if (set_i[w].present && set_i[w].line == victim_line && set_i[w].dirty == victim_mask) begin
        was_there = 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    assume (op_i <= OpTell);
    assume (holds(set_i));
    // Only what is fetched is filled.
    if (is_fill) assume (set_i[way_i].present && set_i[way_i].fetching);
    assert (holds(empty));
    assert (holds(after));
    // No dirty byte is dropped, and none is made up.
    if (watched.dirty[watched_byte_i]) begin
      assert (stays || (victim && victim_line == watched.line && victim_mask[watched_byte_i]));
    end
    if (victim) assert (was_there && victim_mask != '0);
    // A line that is fetched stays where it is, and what a stalled access saw is what is there.
    if (watched.fetching && !(is_fill && way_i == watched_way_i)) begin
      assert (after[watched_way_i].fetching && after[watched_way_i].line == watched.line);
      assert (after[watched_way_i].fetch == watched.fetch);
    end
    if (step == StepStalled) assert (after == set_i && !victim);
    // A write is in the set; a read waits for a fetch, or has every byte.
    if (op_i == OpWrite && step != StepStalled) assert (is_placed);
    if (op_i == OpRead && step == StepHit) assert (&set_i[way].valid && set_i[way].line == line_i);
    if (op_i == OpRead && (step == StepMiss || step == StepMerged)) begin
      assert (after[way].fetching && after[way].line == line_i);
      if (step == StepMiss) assert (after[way].fetch == fetch_i && !fetches_full_i);
      else assert (joined == set_i[way].fetch && set_i[way].fetching);
    end
    // A byte becomes valid by being written or by a good fill, and by nothing else.
    if (after[watched_way_i].valid[watched_byte_i]
        && !(watched.present && watched.valid[watched_byte_i])) begin
      assert ((op_i == OpWrite && mask_i[watched_byte_i]) || (is_fill && good_i));
      assert (way == watched_way_i);
    end
    if (is_fill) assert (valid == set_i[way_i].valid && (!good_i || whole));
  end

endmodule
