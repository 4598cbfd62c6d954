/// em_arb_rr grants one requester in each cycle with a request, and each requester within
/// `Requests - 1` grants to others. With it em_arb_prio, which it is made of, is proved too.
module em_arb_rr_proof #(
    parameter int unsigned Requests = 5
) (
    input logic                        clk_i,
    input logic [Requests-1:0]         request_i,
    input logic                        taken_i,
    /// Any requester: what holds for it holds for all.
    input logic [$clog2(Requests)-1:0] watched_i
);

  logic rst_n = 1'b0;
  logic [$clog2(Requests)-1:0] watched_q;
  always_ff @(posedge clk_i) begin
    rst_n <= 1'b1;
    if (!rst_n) watched_q <= watched_i;
  end

  logic [Requests-1:0] grant, lowest;

  em_arb_rr #(
      .Requests(Requests)
  ) u_dut (
      .clk_i,
      .rst_ni (rst_n),
      .request_i,
      .grant_o(grant),
      .taken_i
  );

  em_arb_prio #(
      .Requests(Requests)
  ) u_prio (
      .request_i,
      .grant_o(lowest)
  );

  // Grants taken by others since the watched one began to ask without a break.
  int unsigned passed_q = 0;

  always_ff @(posedge clk_i) begin
    if (rst_n) begin
      if (!request_i[watched_q] || (taken_i && grant[watched_q])) passed_q <= 0;
      else if (taken_i) passed_q <= passed_q + 1;
      assert ($onehot0(grant));
      assert ((grant & ~request_i) == '0);
      assert ((grant != '0) == (request_i != '0));
      assert (passed_q < Requests);
      for (int unsigned i = 0; i < Requests; i++) begin
        assert (lowest[i] == (request_i[i] && (request_i & ((Requests'(1) << i) - 1'b1)) == '0));
      end
    end else begin
      assume (32'(watched_i) < Requests);
    end
  end

endmodule
