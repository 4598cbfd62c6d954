/// Precedence between every two candidates: the lesser class first; of equal classes, the index
/// that is least after an exclusive OR with `turn_i`.
///
/// Of two equal classes, the highest bit in which the indices differ decides: the index goes first
/// in which that bit is as in `turn_i`.
module em_size_class_precedence
  import em_sched_pkg::*;
#(
    parameter int unsigned Inputs = 8,
    localparam int unsigned IndexWidth = (Inputs > 1) ? $clog2(Inputs) : 1
) (
    input  size_class_t           class_i[Inputs],
    input  logic [IndexWidth-1:0] turn_i,
    /// By candidate: a bit for each of a lesser index that goes before it. All others go before it
    /// unless it goes before them.
    output logic [Inputs-1:0]     before_o[Inputs]
);

  for (genvar i = 0; i < Inputs; i++) begin : gen_inputs
    assign before_o[i][Inputs-1:i] = '0;
    for (genvar j = 0; j < i; j++) begin : gen_earlier
      localparam int unsigned Bit = $clog2((i ^ j) + 1) - 1;
      // That bit is zero in the lesser index.
      assign before_o[i][j] = goes_first(class_i[j], class_i[i], !turn_i[Bit]);
    end
  end

endmodule
