/// em_sched_matcher never matches one port twice, only candidates of ready ports, and is maximal
/// when it stops; and an iteration matches the best candidate of all.
///
/// Keys, candidates and readiness are free in every cycle: nothing is presumed of the queues.
module em_sched_matcher_proof
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 3,
    parameter int unsigned KeyWidth = 3
) (
    input logic                clk_i,
    input logic [Ports-1:0]    candidate_i[Ports],
    input logic [KeyWidth-1:0] key_i[Ports][Ports],
    input logic [Ports-1:0]    response_i[Ports],
    input logic [Ports-1:0]    source_ready_i,
    input logic [Ports-1:0]    destination_ready_i
);

  localparam int unsigned PortWidth = $clog2(Ports);

  logic rst_n = 1'b0;
  phase_e phase, phase_next;
  logic asked;
  logic [Ports-1:0] match, match_response;
  logic [PortWidth-1:0] match_destination[Ports], unused_asked_source[Ports];

  em_sched_matcher #(
      .Ports   (Ports),
      .KeyWidth(KeyWidth)
  ) u_dut (
      .clk_i,
      .rst_ni             (rst_n),
      .candidate_i,
      .key_i,
      .response_i,
      .source_ready_i,
      .destination_ready_i,
      .phase_o            (phase),
      .phase_next_o       (phase_next),
      .asked_o            (asked),
      .asked_source_o     (unused_asked_source),
      .match_o            (match),
      .match_destination_o(match_destination),
      .match_response_o   (match_response)
  );

  // What could be matched, in this cycle and in the one in which the iteration began.
  logic [Ports-1:0] eligible[Ports], eligible_q[Ports], response_q[Ports];
  logic [KeyWidth-1:0] key_q[Ports][Ports];
  logic any, any_best;
  for (genvar s = 0; s < Ports; s++) begin : gen_eligible
    assign eligible[s] = source_ready_i[s] ? candidate_i[s] & destination_ready_i : '0;
  end

  always_comb begin
    any = 1'b0;
    any_best = 1'b0;
    for (int unsigned s = 0; s < Ports; s++) begin
      any |= eligible[s] != '0;
      for (int unsigned d = 0; d < Ports; d++) begin
        // A match with no better eligible candidate anywhere.
        logic best;
        best = match[s] && match_destination[s] == PortWidth'(d);
        for (int unsigned o = 0; o < Ports * Ports; o++) begin
          if (eligible_q[o/Ports][o%Ports] && key_q[o/Ports][o%Ports] < key_q[s][d]) best = 1'b0;
        end
        any_best |= best;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    rst_n <= 1'b1;
    if (rst_n) begin
      if (phase == PhaseRequest) begin
        eligible_q <= eligible;
        key_q      <= key_i;
        response_q <= response_i;
        // It waits only when nothing joins two ready ports: the matching is maximal.
        assert (asked == any);
        assert (phase_next == (any ? PhaseGrant : PhaseRequest));
      end
      assert ((match != '0) == (phase == PhaseMark));
      if (phase == PhaseMark) begin
        assert (any_best);
        assert (phase_next == PhaseRequest);
      end
      for (int unsigned s = 0; s < Ports; s++) begin
        if (match[s]) begin
          assert (eligible_q[s][match_destination[s]]);
          assert (match_response[s] == response_q[s][match_destination[s]]);
          for (int unsigned o = 0; o < Ports; o++) begin
            if (o != s && match[o]) assert (match_destination[o] != match_destination[s]);
          end
        end
      end
    end
  end

endmodule
