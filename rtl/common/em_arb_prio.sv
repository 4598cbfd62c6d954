/// Grants the lowest request.
module em_arb_prio #(
    parameter int unsigned Requests = 8
) (
    input  logic [Requests-1:0] request_i,
    /// One bit, or none without a request.
    output logic [Requests-1:0] grant_o
);

  // Adding one to the complement carries through the zeros below the lowest request.
  assign grant_o = request_i & (~request_i + 1'b1);

endmodule
