/// em_size_class_matcher never matches one port twice. It matches only candidates of ready ports
/// that neither end declines, is maximal when it stops, and matches one of the least class of all
/// in each iteration.
///
/// Candidates, classes, readiness and turn are free in every cycle, and so is what is of the least
/// class of a source: of the queues it is presumed only that what is said to be of the least class
/// of a destination is. Two of the 16 classes are there, the first and the last: the choice among
/// all is that of em_size_class_first, which has a proof of its own, or by
/// em_size_class_precedence, which is proved to choose the same by em_precedence_choice_proof.
module em_size_class_matcher_proof
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 3,
    parameter bit ByOrder = 1'b1,
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic                 clk_i,
    input logic [Ports-1:0]     valid_i[Ports],
    input logic [Ports-1:0]     class_next_i[Ports],
    input logic [Ports-1:0]     response_i[Ports],
    input logic [Ports-1:0]     source_least_i[Ports],
    input logic [Ports-1:0]     destination_least_i[Ports],
    input logic [Ports-1:0]     source_ready_i,
    input logic [Ports-1:0]     destination_ready_i,
    input logic [Ports-1:0]     source_room_i,
    input logic [Ports-1:0]     destination_room_i,
    input logic [PortWidth-1:0] turn_next_i
);

  logic rst_n = 1'b0;
  phase_e phase;
  logic [PortWidth-1:0] turn_q;
  logic [Ports-1:0] asked[Ports], granted[Ports], match[Ports], response;

  size_class_t classes_next[Ports][Ports], classes[Ports][Ports];

  em_size_class_matcher #(
      .Ports  (Ports),
      .ByOrder(ByOrder)
  ) u_dut (
      .clk_i,
      .rst_ni          (rst_n),
      .valid_i,
      .class_i         (classes),
      .class_next_i    (classes_next),
      .response_i,
      .source_least_i,
      .destination_least_i,
      .source_ready_i,
      .destination_ready_i,
      .source_room_i,
      .destination_room_i,
      .turn_i          (turn_q),
      .turn_next_i,
      .phase_o         (phase),
      .asked_o         (asked),
      .granted_o       (granted),
      .match_o         (match),
      .response_o      (response)
  );

  // What could be matched, in this cycle and in the one in which the iteration began.
  logic [Ports-1:0] eligible[Ports], eligible_q[Ports], response_q[Ports];
  size_class_t class_q[Ports][Ports];
  phase_e phase_due_q;
  logic any, any_best, matched;

  for (genvar s = 0; s < Ports; s++) begin : gen_classes
    for (genvar d = 0; d < Ports; d++) begin : gen_destinations
      assign classes_next[s][d] = {SizeClassBits{class_next_i[s][d]}};
    end
  end

  always_comb begin
    any      = 1'b0;
    any_best = 1'b0;
    matched  = 1'b0;
    for (int unsigned s = 0; s < Ports; s++) begin
      for (int unsigned d = 0; d < Ports; d++) begin
        // Either end holds for a candidate that is of the least class of both, while the other end
        // of that is busy; then it declines what is not of its least class.
        logic declined, best;
        declined = 1'b0;
        for (int unsigned o = 0; o < Ports; o++) begin
          if (source_least_i[s][o] && destination_least_i[s][o] && !destination_ready_i[o]
              && !source_least_i[s][d]) declined = 1'b1;
          if (source_least_i[o][d] && destination_least_i[o][d] && !source_ready_i[o]
              && !destination_least_i[s][d]) declined = 1'b1;
        end
        eligible[s][d] = valid_i[s][d] && !declined && source_ready_i[s] &&
                         destination_ready_i[d] && source_room_i[s] && destination_room_i[d];
        any |= eligible[s][d];
        matched |= match[s][d];
        best = match[s][d];
        for (int unsigned o = 0; o < Ports * Ports; o++) begin
          if (eligible_q[o/Ports][o%Ports] && class_q[o/Ports][o%Ports] < class_q[s][d]) begin
            best = 1'b0;
          end
        end
        any_best |= best;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned d = 0; d < Ports; d++) begin
      for (int unsigned s = 0; s < Ports * Ports; s++) begin
        assume (!destination_least_i[s/Ports][d] || !valid_i[s%Ports][d] ||
                classes[s/Ports][d] <= classes[s%Ports][d]);
      end
    end
    rst_n   <= 1'b1;
    turn_q  <= turn_next_i;
    classes <= classes_next;
    unique case (phase)
      PhaseRequest: phase_due_q <= (rst_n && any) ? PhaseGrant : PhaseRequest;
      PhaseGrant: phase_due_q <= PhaseMark;
      default: phase_due_q <= PhaseRequest;
    endcase
    if (rst_n) begin
      if (phase == PhaseRequest) begin
        eligible_q <= eligible;
        class_q    <= classes;
        response_q <= response_i;
      end
      assert (phase == phase_due_q);
      assert (matched == (phase == PhaseMark));
      if (phase == PhaseMark) assert (any_best);
      for (int unsigned s = 0; s < Ports; s++) begin
        assert ((match[s] & (match[s] - 1'b1)) == '0);
        for (int unsigned d = 0; d < Ports; d++) begin
          if (match[s][d]) begin
            assert (eligible_q[s][d]);
            assert (response[d] == response_q[s][d]);
            for (int unsigned o = 0; o < Ports; o++) assert (o == s || !match[o][d]);
          end
        end
      end
    end
  end

  logic unused;
  assign unused = ^{asked[0], granted[0]};

endmodule
