/// A two-flip-flop synchroniser: takes a bit, or a Gray code, into the domain of `clk_i`.
module em_sync #(
    parameter int unsigned Width = 1,
    parameter logic [Width-1:0] ResetValue = '0
) (
    input  logic             clk_i,
    input  logic             rst_ni,
    input  logic [Width-1:0] data_i,
    output logic [Width-1:0] data_o
);

  logic [Width-1:0] first_q, second_q;

  assign data_o = second_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      first_q  <= ResetValue;
      second_q <= ResetValue;
    end else begin
      first_q  <= data_i;
      second_q <= first_q;
    end
  end

endmodule
