/// em_size_class_first gives one input that is valid and allowed, if one of the least class of the
/// valid ones is; none is of a lesser class, or of its class, allowed and nearer to the turn.
module em_size_class_first_proof
  import em_sched_pkg::*;
#(
    parameter int unsigned Inputs = 5,
    localparam int unsigned IndexWidth = $clog2(Inputs)
) (
    input logic                  clk_i,
    input logic [Inputs-1:0]     valid_i,
    input logic [Inputs-1:0]     allowed_i,
    input size_class_t           class_i[Inputs],
    input logic [IndexWidth-1:0] turn_i
);

  logic [Inputs-1:0] first, least;
  class_set_t of_class[Inputs], lesser[Inputs], ahead;
  logic any_least;

  for (genvar i = 0; i < Inputs; i++) begin : gen_sets
    assign of_class[i] = only_class(class_i[i]);
    assign lesser[i]   = lesser_classes(class_i[i]);
  end

  em_size_class_first #(
      .Inputs(Inputs)
  ) u_dut (
      .valid_i,
      .allowed_i,
      .class_i (of_class),
      .lesser_i(lesser),
      .turn_i,
      .first_o (first),
      .before_o(ahead)
  );

  always_comb begin
    any_least = 1'b0;
    for (int unsigned i = 0; i < Inputs; i++) begin
      least[i] = valid_i[i];
      for (int unsigned o = 0; o < Inputs; o++) begin
        if (valid_i[o] && class_i[o] < class_i[i]) least[i] = 1'b0;
      end
      if (least[i] && ahead == lesser[i] && class_after(ahead) == of_class[i]) any_least = 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    assert (any_least == (valid_i != '0));
    assert (valid_i != '0 || ahead == '1 && class_after(ahead) == '0);
    assert ((first != '0) == ((least & allowed_i) != '0));
    assert ((first & ~allowed_i) == '0);
    assert ((first & (first - 1'b1)) == '0);
    assert ((first & ~valid_i) == '0);
    for (int unsigned i = 0; i < Inputs; i++) begin
      for (int unsigned o = 0; o < Inputs; o++) begin
        if (first[i] && valid_i[o] && (allowed_i[o] || class_i[o] < class_i[i])) begin
          assert ({class_i[i], IndexWidth'(i) ^ turn_i} <= {class_i[o], IndexWidth'(o) ^ turn_i});
        end
      end
    end
  end

endmodule
