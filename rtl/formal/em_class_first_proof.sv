/// em_class_first gives one valid input, and none is of a lesser class, or of its class and nearer
/// to the turn.
module em_class_first_proof
  import em_sched_pkg::*;
#(
    parameter int unsigned Inputs = 5,
    localparam int unsigned IndexWidth = $clog2(Inputs)
) (
    input logic                  clk_i,
    input logic [Inputs-1:0]     valid_i,
    input size_class_t           class_i[Inputs],
    input logic [IndexWidth-1:0] turn_i
);

  logic [Inputs-1:0] first;

  em_class_first #(
      .Inputs(Inputs)
  ) u_dut (
      .valid_i,
      .class_i,
      .turn_i,
      .first_o(first)
  );

  always_ff @(posedge clk_i) begin
    assert ((first != '0) == (valid_i != '0));
    assert ((first & (first - 1'b1)) == '0);
    assert ((first & ~valid_i) == '0);
    for (int unsigned i = 0; i < Inputs; i++) begin
      for (int unsigned o = 0; o < Inputs; o++) begin
        if (first[i] && valid_i[o]) begin
          assert ({class_i[i], IndexWidth'(i) ^ turn_i} <= {class_i[o], IndexWidth'(o) ^ turn_i});
        end
      end
    end
  end

endmodule
