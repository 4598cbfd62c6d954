/// em_switch_lanes sends whole units, one after the other, in the order in which they began, and
/// without a break while the reader takes them.
///
/// Each source sends units of one or two blocks, a block a cycle once one has begun, whenever it
/// likes. A block says its source, its place in the unit and the unit's number, and the numbers are
/// given in the order of the beginnings.
module em_switch_lanes_proof
  import em_pkg::SyncData;
  import em_link_pkg::*;
#(
    parameter int unsigned Sources = 2
) (
    input logic               clk_i,
    input logic [Sources-1:0] begin_i,
    input logic [Sources-1:0] end_i,
    input logic               ready_i
);

  localparam int unsigned UnitBlocks = 2;
  localparam int unsigned NumberBits = 3;
  typedef logic [NumberBits-1:0] number_t;
  typedef struct packed {
    number_t    number;
    logic [1:0] place;
  } tag_t;

  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic [Sources-1:0] open_q = '0, valid, first, last, refused, began;
  logic [1:0] place_q[Sources];
  number_t number_q[Sources], number[Sources], next_q = '0, next_d;
  block_t [Sources-1:0] blocks;
  logic valid_o, last_o;
  block_t block_o;
  logic unused;
  logic [5:0] opened, left;

  assign first = ~open_q & begin_i;
  assign valid = open_q | begin_i;
  for (genvar s = 0; s < Sources; s++) begin : gen_blocks
    assign last[s]   = end_i[s] || open_q[s] && place_q[s] == 2'(UnitBlocks - 1);
    assign blocks[s] = '{
        payload: 64'({number[s], open_q[s] ? place_q[s] : 2'd0}),
        header: SyncData
    };
  end

  // A refused unit has no number: the reader has no place for it.
  always_comb begin
    next_d = next_q;
    for (int unsigned s = 0; s < Sources; s++) begin
      number[s] = open_q[s] ? number_q[s] : next_d;
      if (began[s]) next_d = next_d + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_n) begin
      next_q <= next_d;
      for (int unsigned s = 0; s < Sources; s++) begin
        open_q[s]   <= valid[s] && !last[s] && !refused[s];
        place_q[s]  <= open_q[s] ? place_q[s] + 1'b1 : 2'd1;
        number_q[s] <= number[s];
      end
    end
  end

  em_switch_lanes #(
      .Sources   (Sources),
      .Lanes     (Sources),
      .LaneBlocks(2),
      .UnitBlocks(UnitBlocks),
      .Units     (2),
      .MarkWidth (6)
  ) u_dut (
      .clk_i,
      .rst_ni   (rst_n),
      .clear_i  (1'b0),
      .valid_i  (rst_n ? valid : '0),
      .first_i  (first),
      .last_i   (last),
      .block_i  (blocks),
      .refused_o(refused),
      .valid_o,
      .last_o,
      .block_o,
      .ready_i,
      .opened_o (opened),
      .left_o   (left)
  );

  // A free lane of two has no room for a source only while the reader holds all back.
  assign began  = first & ~refused;
  assign unused = ^block_o;

  // What is to come next: a unit's first block, or the one after the last one seen.
  tag_t want_q = '0, shown;
  logic inside_q = 1'b0;
  assign shown = block_o.payload[$bits(tag_t)-1:0];

  always_ff @(posedge clk_i) begin
    if (rst_n) begin
      if (valid_o) assert (shown == want_q);
      if (inside_q) assert (valid_o);
      assert (opened - left <= 6'd32);
      if (valid_o && ready_i) begin
        inside_q      <= !last_o;
        want_q.number <= last_o ? want_q.number + 1'b1 : want_q.number;
        want_q.place  <= last_o ? 2'd0 : want_q.place + 1'b1;
      end
    end
  end

endmodule
