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
    output logic [Ports-1:0] source_least_o[Ports],
    output logic [Ports-1:0] destination_least_o[Ports]
);

  logic [Ports-1:0] source_least[Ports], destination_least[Ports];

  for (genvar p = 0; p < Ports; p++) begin : gen_ports
    logic [Ports-1:0] to_valid, to_least;
    size_class_t from_class[Ports], to_class[Ports];

    for (genvar o = 0; o < Ports; o++) begin : gen_others
      assign to_valid[o]             = valid_i[o][p];
      assign to_class[o]             = class_i[o][p];
      assign from_class[o]           = class_i[p][o];
      assign destination_least[o][p] = to_least[o];
    end

    em_class_least #(
        .Inputs(Ports)
    ) u_source (
        .valid_i(valid_i[p]),
        .class_i(from_class),
        .least_o(source_least[p])
    );

    em_class_least #(
        .Inputs(Ports)
    ) u_destination (
        .valid_i(to_valid),
        .class_i(to_class),
        .least_o(to_least)
    );
  end

  always_ff @(posedge clk_i) begin
    source_least_o      <= source_least;
    destination_least_o <= destination_least;
  end

endmodule
