/// Queues units of blocks of several sources towards one port: each leaves without a break, in the
/// order in which they began. While one passes through, others are stored behind it.
///
/// A unit has a lane, a FIFO that no other source writes meanwhile. Units that begin in the same
/// cycle take lanes from the lowest on, by source, and leave in that order. A mask of lanes per
/// cycle therefore keeps the order, whatever the number of sources.
module em_switch_lanes
  import em_link_pkg::*;
#(
    parameter int unsigned Sources = 8,
    /// Units that may be coming in at the same time; Sources is always enough.
    parameter int unsigned Lanes = 7,
    /// Blocks of each: those of the longest unit at least.
    parameter int unsigned LaneBlocks = 128,
    /// Blocks of the longest unit: a lane with less room takes none.
    parameter int unsigned UnitBlocks = 35,
    /// Units that may wait, at least.
    parameter int unsigned Units = 64,
    /// Bits of the counts of units.
    parameter int unsigned MarkWidth = 10,
    /// Cycles that a unit waits after it began. One for sources whose clocks are slower by some
    /// parts in a million, so that it does not run dry; none where all clocks are of one frequency.
    parameter int unsigned ElasticCycles = 0
) (
    input logic clk_i,
    input logic rst_ni,
    /// Forgets everything.
    input logic clear_i,

    /// By source: a block of a unit that it began here, or begins.
    input  logic [Sources-1:0] valid_i,
    input  logic [Sources-1:0] first_i,
    input  logic [Sources-1:0] last_i,
    input  block_t [Sources-1:0] block_i,
    /// With a first block: no lane is free. It is lost, and no other block of it may come.
    output logic [Sources-1:0] refused_o,

    output logic   valid_o,
    output logic   last_o,
    output block_t block_o,
    input  logic   ready_i,

    /// Units that began, and that left, as counts that wrap.
    output logic [MarkWidth-1:0] opened_o,
    output logic [MarkWidth-1:0] left_o
);

  typedef struct packed {
    logic   last;
    block_t block;
  } word_t;

  localparam int unsigned CountWidth = $clog2(LaneBlocks + 1);

  if (LaneBlocks < UnitBlocks) begin : gen_bad_lane
    $error("LaneBlocks must be UnitBlocks at least");
  end

  logic [Lanes-1:0] writing_q, writing_d, has_room, opened, ends, lane_valid, lane_write;
  logic [Sources-1:0] writer_q[Lanes], picked[Lanes], remaining[Lanes+1];
  word_t written[Lanes], shown[Lanes];
  logic [Lanes-1:0] current, group, group_head, done_q;
  logic group_valid, group_ready, taken, unit_ends, group_ends;
  logic [Lanes-1:0] began[ElasticCycles+1];
  logic [MarkWidth-1:0] opened_q, left_q, opened_d;
  logic [$clog2(Units+1)-1:0] unused_count;

  // Each free lane takes the lowest source that no lane before it took.
  assign remaining[0] = (group_ready && !clear_i) ? valid_i & first_i : '0;
  for (genvar l = 0; l < Lanes; l++) begin : gen_lanes
    logic [CountWidth-1:0] count;
    logic [Sources-1:0] lowest, writer;
    logic unused_ready;

    em_arb_prio #(
        .Requests(Sources)
    ) u_lowest (
        .request_i(remaining[l]),
        .grant_o  (lowest)
    );

    assign has_room[l]    = count <= CountWidth'(LaneBlocks - UnitBlocks);
    assign picked[l]      = (!writing_q[l] && has_room[l]) ? lowest : '0;
    assign remaining[l+1] = remaining[l] & ~picked[l];
    assign opened[l]      = picked[l] != '0;
    assign writer         = writing_q[l] ? writer_q[l] : picked[l];
    assign lane_write[l]  = (writer & valid_i) != '0;
    assign ends[l]        = lane_write[l] && written[l].last;
    assign writing_d[l]   = (writing_q[l] || opened[l]) && !ends[l];

    always_comb begin
      written[l] = '0;
      for (int unsigned s = 0; s < Sources; s++) begin
        if (writer[s]) written[l] |= {last_i[s], block_i[s]};
      end
    end

    always_ff @(posedge clk_i) begin
      if (opened[l]) writer_q[l] <= picked[l];
    end

    em_fifo_ram #(
        .Width($bits(word_t)),
        .Depth(LaneBlocks)
    ) u_lane (
        .clk_i,
        .rst_ni,
        .clear_i,
        .valid_i(lane_write[l]),
        .ready_o(unused_ready),
        .data_i (written[l]),
        .valid_o(lane_valid[l]),
        .ready_i(taken && current[l]),
        .data_o (shown[l]),
        .count_o(count)
    );
  end

  assign refused_o = clear_i ? '0 : (valid_i & first_i) & ~(remaining[0] & ~remaining[Lanes]);

  assign began[0] = opened;
  for (genvar e = 0; e < ElasticCycles; e++) begin : gen_elastic
    logic [Lanes-1:0] began_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) began_q <= '0;
      else began_q <= clear_i ? '0 : began[e];
    end
    assign began[e+1] = began_q;
  end

  // The lanes whose units began in the same cycle, oldest cycle first.
  em_fifo_ram #(
      .Width(Lanes),
      .Depth(Units)
  ) u_order (
      .clk_i,
      .rst_ni,
      .clear_i,
      .valid_i(began[ElasticCycles] != '0),
      .ready_o(group_ready),
      .data_i (began[ElasticCycles]),
      .valid_o(group_valid),
      .ready_i(group_ends),
      .data_o (group_head),
      .count_o(unused_count)
  );

  assign group = group_head & ~done_q;

  em_arb_prio #(
      .Requests(Lanes)
  ) u_current (
      .request_i(group),
      .grant_o  (current)
  );

  always_comb begin
    {last_o, block_o} = '0;
    for (int unsigned l = 0; l < Lanes; l++) begin
      if (current[l]) {last_o, block_o} |= shown[l];
    end
  end

  assign valid_o    = group_valid && (lane_valid & current) != '0;
  assign taken      = valid_o && ready_i;
  assign unit_ends  = taken && last_o;
  assign group_ends = unit_ends && group == current;

  always_comb begin
    opened_d = opened_q;
    for (int unsigned l = 0; l < Lanes; l++) opened_d += MarkWidth'(opened[l]);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {writing_q, done_q, opened_q, left_q} <= '0;
    end else if (clear_i) begin
      {writing_q, done_q, opened_q, left_q} <= '0;
    end else begin
      writing_q <= writing_d;
      opened_q  <= opened_d;
      left_q    <= left_q + MarkWidth'(unit_ends);
      if (group_ends) done_q <= '0;
      else if (unit_ends) done_q <= done_q | current;
    end
  end

  assign opened_o = opened_q;
  assign left_o   = left_q;

endmodule
