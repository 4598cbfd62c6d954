/// Which of the inputs are of the least class that any has.
///
/// A bit for each class that is there; an input is not of the least one if anything is there that
/// goes before its own class. The depth is that of an OR over all inputs and one over all classes,
/// and no comparator is as wide as a key.
module em_size_class_least
  import em_sched_pkg::*;
#(
    parameter int unsigned Inputs = 8
) (
    input  logic [Inputs-1:0] valid_i,
    /// The classes that an input has, its own and maybe greater ones; none, if it is not valid.
    input  class_set_t        has_i[Inputs],
    /// What goes before its own class.
    input  class_set_t        lesser_i[Inputs],
    output logic [Inputs-1:0] least_o,
    /// What goes before the least class; all classes, without a valid input.
    output class_set_t        before_o
);

  class_set_t present;

  for (genvar c = 0; c < SizeClasses; c++) begin : gen_classes
    logic [Inputs-1:0] of_class;
    for (genvar i = 0; i < Inputs; i++) begin : gen_inputs
      assign of_class[i] = has_i[i][c];
    end
    assign present[c]  = of_class != '0;
    assign before_o[c] = present[c:0] == '0;
  end

  for (genvar i = 0; i < Inputs; i++) begin : gen_inputs
    assign least_o[i] = valid_i[i] && (lesser_i[i] & present) == '0;
  end

endmodule
