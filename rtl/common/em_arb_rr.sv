/// Grants requests round robin: after a taken grant, the request next above it goes first. A
/// requester that keeps asking waits for at most `Requests - 1` others.
module em_arb_rr #(
    parameter int unsigned Requests = 8
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [Requests-1:0] request_i,
    /// One bit, or none without a request.
    output logic [Requests-1:0] grant_o,
    /// The grant is used: the turn passes on.
    input  logic                taken_i
);

  /// Requests still to be served in this round: all above the last one taken.
  logic [Requests-1:0] above_q;
  logic [Requests-1:0] first, again;

  em_arb_prio #(
      .Requests(Requests)
  ) u_first (
      .request_i(request_i & above_q),
      .grant_o  (first)
  );

  em_arb_prio #(
      .Requests(Requests)
  ) u_again (
      .request_i(request_i),
      .grant_o  (again)
  );

  assign grant_o = (first != '0) ? first : again;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) above_q <= '1;
    // Less one has all bits below the granted one; with it, all up to it.
    else if (taken_i && grant_o != '0) above_q <= ~(grant_o | (grant_o - 1'b1));
  end

endmodule
