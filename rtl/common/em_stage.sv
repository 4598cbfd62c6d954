/// An optional pipeline stage: a register, or wires.
module em_stage #(
    parameter int unsigned Width = 8,
    parameter bit Register = 1'b1
) (
    input  logic             clk_i,
    input  logic             rst_ni,
    input  logic             valid_i,
    input  logic [Width-1:0] data_i,
    output logic             valid_o,
    output logic [Width-1:0] data_o
);

  if (Register) begin : gen_register
    logic valid_q;
    logic [Width-1:0] data_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) valid_q <= 1'b0;
      else valid_q <= valid_i;
    end
    always_ff @(posedge clk_i) data_q <= data_i;
    assign valid_o = valid_q;
    assign data_o  = data_q;
  end else begin : gen_wires
    logic unused;
    assign unused  = ^{clk_i, rst_ni};
    assign valid_o = valid_i;
    assign data_o  = data_i;
  end

endmodule
