/// Which candidates are of the least class of their source, and of their destination: registered,
/// so that it is found beside the update of the candidates and not before the choice among them.
module em_class_mutual
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 8
) (
    input logic clk_i,

    /// By source and destination: the candidates of the next cycle.
    input  logic [Ports-1:0] valid_i[Ports],
    input  size_class_t      class_i[Ports][Ports],
    /// The classes that a pair has, of which its candidate's is the least.
    input  class_set_t       has_i[Ports][Ports],
    output logic [Ports-1:0] source_least_o[Ports],
    output logic [Ports-1:0] destination_least_o[Ports]
);

  logic [Ports-1:0] source_least[Ports], destination_least[Ports];

  class_set_t lesser[Ports][Ports], unused_source[Ports], unused_destination[Ports];

  for (genvar s = 0; s < Ports; s++) begin : gen_sources
    for (genvar d = 0; d < Ports; d++) begin : gen_destinations
      assign lesser[s][d] = lesser_classes(class_i[s][d]);
    end
  end

  for (genvar p = 0; p < Ports; p++) begin : gen_ports
    logic [Ports-1:0] to_valid, to_least;
    class_set_t to_has[Ports], to_lesser[Ports];

    for (genvar o = 0; o < Ports; o++) begin : gen_others
      assign to_valid[o]             = valid_i[o][p];
      assign to_has[o]               = has_i[o][p];
      assign to_lesser[o]            = lesser[o][p];
      assign destination_least[o][p] = to_least[o];
    end

    em_class_least #(
        .Inputs(Ports)
    ) u_source (
        .valid_i (valid_i[p]),
        .has_i   (has_i[p]),
        .lesser_i(lesser[p]),
        .least_o (source_least[p]),
        .before_o(unused_source[p])
    );

    em_class_least #(
        .Inputs(Ports)
    ) u_destination (
        .valid_i (to_valid),
        .has_i   (to_has),
        .lesser_i(to_lesser),
        .least_o (to_least),
        .before_o(unused_destination[p])
    );
  end

  always_ff @(posedge clk_i) begin
    source_least_o      <= source_least;
    destination_least_o <= destination_least;
  end

endmodule
