/// Finds the least valid key by a tree of comparators; among equal keys the lowest index.
module em_min_tree #(
    parameter int unsigned Inputs = 8,
    parameter int unsigned KeyWidth = 16,
    localparam int unsigned IndexWidth = (Inputs > 1) ? $clog2(Inputs) : 1
) (
    input  logic [Inputs-1:0]     valid_i,
    input  logic [KeyWidth-1:0]   key_i[Inputs],
    output logic                  valid_o,
    output logic [IndexWidth-1:0] index_o,
    /// Undefined without a valid input.
    output logic [KeyWidth-1:0]   key_o
);

  localparam int unsigned Leaves = 1 << IndexWidth;

  always_comb begin
    // A heap: node n has the children 2n and 2n + 1, the leaves are the upper half.
    logic valid[2*Leaves];
    logic [KeyWidth-1:0] key[2*Leaves];
    logic [IndexWidth-1:0] index[2*Leaves];
    valid[0] = 1'b0;
    key[0]   = '0;
    index[0] = '0;
    for (int unsigned i = 0; i < Leaves; i++) begin
      valid[Leaves+i] = (i < Inputs) ? valid_i[i<Inputs?i : 0] : 1'b0;
      key[Leaves+i]   = key_i[i<Inputs?i : 0];
      index[Leaves+i] = IndexWidth'(i);
    end
    for (int unsigned n = Leaves - 1; n > 0; n--) begin
      if (valid[2*n+1] && (!valid[2*n] || key[2*n+1] < key[2*n])) begin
        key[n]   = key[2*n+1];
        index[n] = index[2*n+1];
      end else begin
        key[n]   = key[2*n];
        index[n] = index[2*n];
      end
      valid[n] = valid[2*n] || valid[2*n+1];
    end
    valid_o = valid[1];
    key_o   = key[1];
    index_o = index[1];
  end

endmodule
