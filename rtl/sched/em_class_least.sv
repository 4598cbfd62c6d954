/// Which of the valid inputs are of the least class among them.
///
/// A bit for each class that is there, and a prefix over these: the depth is that of an OR over all
/// inputs, and no comparator is as wide as a key.
module em_class_least
  import em_sched_pkg::*;
#(
    parameter int unsigned Inputs = 8
) (
    input  logic [Inputs-1:0] valid_i,
    input  size_class_t       class_i[Inputs],
    output logic [Inputs-1:0] least_o
);

  logic [SizeClasses-1:0] is_class[Inputs];
  // By class: whether a valid input has it, and whether one has a lesser one. Nothing is above the
  // last class.
  logic [SizeClasses-1:0] lesser;
  logic [SizeClasses-2:0] present;

  for (genvar i = 0; i < Inputs; i++) begin : gen_inputs
    for (genvar c = 0; c < SizeClasses; c++) begin : gen_decode
      assign is_class[i][c] = class_i[i] == size_class_t'(c);
    end
    assign least_o[i] = valid_i[i] && (is_class[i] & lesser) == '0;
  end

  assign lesser[0] = 1'b0;
  for (genvar c = 0; c + 1 < SizeClasses; c++) begin : gen_classes
    logic [Inputs-1:0] of_class;
    for (genvar i = 0; i < Inputs; i++) begin : gen_inputs
      assign of_class[i] = valid_i[i] && is_class[i][c];
    end
    assign present[c]  = of_class != '0;
    assign lesser[c+1] = present[c:0] != '0;
  end

endmodule
