/// The sums of em_sched_pkg, of gates and of carry chains, are sums.
module em_sched_sum_proof
  import em_sched_pkg::*;
(
    input logic  clk_i,
    input left_t part_i[5]
);

  left_t two, three, four, five;
  assign two   = part_i[0] + part_i[1];
  assign three = two + part_i[2];
  assign four  = three + part_i[3];
  assign five  = four + part_i[4];

  always_ff @(posedge clk_i) begin
    assert (plus_by_prefixes(part_i[0], part_i[1]) == two);
    assert (plus(part_i[0], part_i[1]) == two);
    assert (plus3(part_i[0], part_i[1], part_i[2]) == three);
    assert (plus4(part_i[0], part_i[1], part_i[2], part_i[3]) == four);
    assert (plus5(part_i[0], part_i[1], part_i[2], part_i[3], part_i[4]) == five);
  end

endmodule
