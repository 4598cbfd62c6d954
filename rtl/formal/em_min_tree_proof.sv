/// em_min_tree gives the least valid key; of equal ones the lowest index.
module em_min_tree_proof #(
    parameter int unsigned Inputs = 6,
    parameter int unsigned KeyWidth = 4
) (
    input logic                clk_i,
    input logic [Inputs-1:0]   valid_i,
    input logic [KeyWidth-1:0] key_i[Inputs]
);

  logic valid;
  logic [$clog2(Inputs)-1:0] index;
  logic [KeyWidth-1:0] key;

  em_min_tree #(
      .Inputs  (Inputs),
      .KeyWidth(KeyWidth)
  ) u_dut (
      .valid_i,
      .key_i,
      .valid_o(valid),
      .index_o(index),
      .key_o  (key)
  );

  always_ff @(posedge clk_i) begin
    assert (valid == (valid_i != '0));
    if (valid) begin
      assert (32'(index) < Inputs && valid_i[index] && key == key_i[index]);
      for (int unsigned i = 0; i < Inputs; i++) begin
        if (valid_i[i]) assert (key < key_i[i] || (key == key_i[i] && 32'(index) <= i));
      end
    end
  end

endmodule
