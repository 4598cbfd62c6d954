/// One of the valid inputs of the least class: the one whose index is the least after an exclusive
/// OR with `turn_i`, of those that are allowed. What is not allowed counts for which class is the
/// least.
///
/// At each bit of the index, from the highest, the half goes first in which that bit is as in
/// `turn_i`; so an input is first unless some half beside its own goes before it and has anything.
module em_size_class_first
  import em_sched_pkg::*;
#(
    parameter int unsigned Inputs = 8,
    localparam int unsigned IndexWidth = (Inputs > 1) ? $clog2(Inputs) : 1
) (
    input  logic [Inputs-1:0]     valid_i,
    input  logic [Inputs-1:0]     allowed_i,
    /// The class of each, and what goes before it.
    input  class_set_t            class_i[Inputs],
    input  class_set_t            lesser_i[Inputs],
    input  logic [IndexWidth-1:0] turn_i,
    /// One bit, or none without a valid input.
    output logic [Inputs-1:0]     first_o,
    /// What goes before the least class; all classes, without a valid input.
    output class_set_t            before_o
);

  localparam int unsigned Leaves = 1 << IndexWidth;

  logic [Inputs-1:0] of_least, least;
  class_set_t has[Inputs];

  for (genvar i = 0; i < Inputs; i++) begin : gen_has
    assign has[i] = class_i[i] & {SizeClasses{valid_i[i]}};
  end

  em_size_class_least #(
      .Inputs(Inputs)
  ) u_least (
      .valid_i,
      .has_i  (has),
      .lesser_i,
      .least_o(of_least),
      .before_o
  );

  assign least = of_least & allowed_i;

  // By bit of the index and by group of inputs that agree from there on: whether any is there.
  logic [Leaves-1:0] all, any[IndexWidth];
  assign all = Leaves'(least);

  for (genvar k = 0; k < IndexWidth; k++) begin : gen_bits
    for (genvar g = 0; g < Leaves; g++) begin : gen_groups
      if (g < (Leaves >> k)) begin : gen_used
        assign any[k][g] = all[g*(1<<k)+:(1<<k)] != '0;
      end else begin : gen_unused
        assign any[k][g] = 1'b0;
      end
    end
  end

  for (genvar i = 0; i < Inputs; i++) begin : gen_inputs
    logic [IndexWidth-1:0] beaten;
    for (genvar k = 0; k < IndexWidth; k++) begin : gen_beside
      localparam bit Bit = ((i >> k) & 1) != 0;
      assign beaten[k] = any[k][(i>>k)^1] && turn_i[k] != Bit;
    end
    assign first_o[i] = least[i] && beaten == '0;
  end

endmodule
