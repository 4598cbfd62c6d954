/// Which candidates are of the least class of their source, and of their destination: registered,
/// so that it is found beside the update of the candidates and not before the choice among them.
///
/// The candidate of a pair is the better one of its two flows. So it is of the least class if
/// either of them is, and which of them is the candidate need not be known.
module em_class_mutual
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 8
) (
    input logic clk_i,

    /// By source and destination: what each flow has in the next cycle.
    input  logic [1:0]       valid_i[Ports][Ports],
    input  size_class_t      class_i[Ports][Ports][2],
    output logic [Ports-1:0] source_least_o[Ports],
    output logic [Ports-1:0] destination_least_o[Ports]
);

  logic [Ports-1:0] source_least[Ports], destination_least[Ports];

  for (genvar p = 0; p < Ports; p++) begin : gen_ports
    // By flow and port at the other end.
    logic [2*Ports-1:0] from_valid, from_least, to_valid, to_least;
    class_set_t from_has[2*Ports], from_lesser[2*Ports], to_has[2*Ports], to_lesser[2*Ports];
    class_set_t unused_from, unused_to;

    for (genvar i = 0; i < 2 * Ports; i++) begin : gen_others
      localparam int unsigned Flow = i / Ports, Other = i % Ports;
      assign from_valid[i]  = valid_i[p][Other][Flow];
      assign from_has[i]    = only_class(class_i[p][Other][Flow]) & {SizeClasses{from_valid[i]}};
      assign from_lesser[i] = lesser_classes(class_i[p][Other][Flow]);
      assign to_valid[i]    = valid_i[Other][p][Flow];
      assign to_has[i]      = only_class(class_i[Other][p][Flow]) & {SizeClasses{to_valid[i]}};
      assign to_lesser[i]   = lesser_classes(class_i[Other][p][Flow]);
    end

    em_class_least #(
        .Inputs(2 * Ports)
    ) u_source (
        .valid_i (from_valid),
        .has_i   (from_has),
        .lesser_i(from_lesser),
        .least_o (from_least),
        .before_o(unused_from)
    );

    em_class_least #(
        .Inputs(2 * Ports)
    ) u_destination (
        .valid_i (to_valid),
        .has_i   (to_has),
        .lesser_i(to_lesser),
        .least_o (to_least),
        .before_o(unused_to)
    );

    assign source_least[p] = from_least[Ports+:Ports] | from_least[0+:Ports];
    for (genvar o = 0; o < Ports; o++) begin : gen_destination_least
      assign destination_least[o][p] = to_least[o] || to_least[Ports+o];
    end
  end

  always_ff @(posedge clk_i) begin
    source_least_o      <= source_least;
    destination_least_o <= destination_least;
  end

endmodule
