/// Computes the new word of an atomic. Combinational.
module em_rmw
  import em_pkg::*;
(
    input  logic [3:0]       opcode_i,
    input  logic [1:0][63:0] operands_i,
    input  logic [63:0]      old_i,
    output logic [63:0]      new_o,
    /// False for a compare-and-swap that found another word than expected.
    output logic             stores_o,
    output logic             known_o
);

  always_comb begin
    new_o    = operands_i[0];
    stores_o = 1'b1;
    known_o  = 1'b1;
    unique case (opcode_i)
      OpCompareAndSwap: begin
        new_o    = operands_i[1];
        stores_o = old_i == operands_i[0];
      end
      OpFetchAndAdd: new_o = old_i + operands_i[0];
      OpSwap:        new_o = operands_i[0];
      OpAnd:         new_o = old_i & operands_i[0];
      OpOr:          new_o = old_i | operands_i[0];
      OpXor:         new_o = old_i ^ operands_i[0];
      default: begin
        known_o  = 1'b0;
        stores_o = 1'b0;
      end
    endcase
  end

endmodule
