/// All pairs of ports: the candidate of each, and which are of the least class of their ends.
module em_size_class_candidates
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned Depth = 3,
    parameter bit ByOrder = (Ports <= 8),
    localparam int unsigned CountWidth = $clog2(Depth + 1)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [Ports-1:0] port_up_i,
    /// By flow and port that asks: a bit for the peer, and the class of what it asks for.
    input logic [Ports-1:0] asks_i[2][Ports],
    input size_class_t      ask_class_i[Ports],

    // In the mark cycle.
    /// By source; by destination, that it asked for a response.
    input logic [Ports-1:0] match_i[Ports],
    input logic [Ports-1:0] match_response_i,
    /// By flow and port that asked: what its bank says of the message that is granted.
    input logic [Ports-1:0] last_i[2],
    input size_class_t      after_class_i[2][Ports],
    input size_class_t      second_class_i[2][Ports],

    // By source and destination, and by flow.
    output logic [1:0]            refused_o[Ports][Ports],
    output logic [CountWidth-1:0] insert_slot_o[Ports][Ports][2],
    output logic [CountWidth-1:0] head_slot_o[Ports][Ports][2],
    output logic [1:0]            started_o[Ports][Ports],

    // By source and destination: the candidates, and their classes in the next cycle.
    output logic [Ports-1:0] valid_o[Ports],
    output size_class_t      class_o[Ports][Ports],
    output size_class_t      class_next_o[Ports][Ports],
    output logic [Ports-1:0] response_o[Ports],
    output logic [Ports-1:0] source_least_o[Ports],
    output logic [Ports-1:0] destination_least_o[Ports]
);

  localparam int unsigned Response = 0, Write = 1;

  logic [CountWidth-1:0] unreleased[Ports][Ports];
  logic [Ports-1:0] release_now[Ports], valid_next[Ports];
  logic [1:0] flow_valid_next[Ports][Ports];
  size_class_t flow_class_next[Ports][Ports][2];

  for (genvar s = 0; s < Ports; s++) begin : gen_sources
    for (genvar d = 0; d < Ports; d++) begin : gen_pairs
      if (s == d) begin : gen_none
        assign {valid_o[s][d], valid_next[s][d], response_o[s][d], release_now[s][d]} = '0;
        assign {refused_o[s][d], started_o[s][d], unreleased[s][d]} = '0;
        assign {class_o[s][d], class_next_o[s][d], flow_valid_next[s][d]} = '0;
        assign flow_class_next[s][d] = '{default: '0};
        assign insert_slot_o[s][d] = '{default: '0};
        assign head_slot_o[s][d]   = insert_slot_o[s][d];
      end else begin : gen_pair
        em_size_class_candidate #(
            .Depth(Depth)
        ) u_pair (
            .clk_i,
            .rst_ni,
            .clear_i             (!port_up_i[s] || !port_up_i[d]),
            .insert_i            ({asks_i[Write][s][d], asks_i[Response][d][s]}),
            .insert_class_i      ('{ask_class_i[d], ask_class_i[s]}),
            .refused_o           (refused_o[s][d]),
            .insert_slot_o       (insert_slot_o[s][d]),
            .head_slot_o         (head_slot_o[s][d]),
            .started_o           (started_o[s][d]),
            .take_i              ({2{match_i[s][d]}} & {!match_response_i[d], match_response_i[d]}),
            .last_i              ({last_i[Write][s], last_i[Response][d]}),
            .after_class_i       ('{after_class_i[Response][d], after_class_i[Write][s]}),
            .second_class_i      ('{second_class_i[Response][d], second_class_i[Write][s]}),
            .unreleased_o        (unreleased[s][d]),
            .release_o           (release_now[s][d]),
            .reverse_unreleased_i(unreleased[d][s]),
            .reverse_release_i   (release_now[d][s]),
            .valid_next_o        (valid_next[s][d]),
            .class_next_o        (class_next_o[s][d]),
            .flow_valid_next_o   (flow_valid_next[s][d]),
            .flow_class_next_o   (flow_class_next[s][d]),
            .valid_o             (valid_o[s][d]),
            .class_o             (class_o[s][d]),
            .response_o          (response_o[s][d])
        );
      end
    end
  end

  em_size_class_mutual_least #(
      .Ports  (Ports),
      .ByOrder(ByOrder)
  ) u_mutual (
      .clk_i,
      .valid_i            (valid_next),
      .class_i            (class_next_o),
      .flow_valid_i       (flow_valid_next),
      .flow_class_i       (flow_class_next),
      .source_least_o,
      .destination_least_o
  );

endmodule
