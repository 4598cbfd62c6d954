/// Which candidates are of the least class of their source, and of their destination: registered,
/// so that it is found beside the update of the candidates and not before the choice among them.
///
/// For few ports each two candidates of a port are compared. For many there is a bit for each class
/// that is there; the candidate of a pair is the better one of its two flows, so it is of the least
/// class if either of them is, and which of them is the candidate need not be known.
module em_class_mutual
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 8,
    /// Each two are compared.
    parameter bit ByOrder = (Ports <= 8)
) (
    input logic clk_i,

    /// By source and destination: the candidates of the next cycle, and what each flow has for it.
    input  logic [Ports-1:0] valid_i[Ports],
    input  size_class_t      class_i[Ports][Ports],
    input  logic [1:0]       flow_valid_i[Ports][Ports],
    input  size_class_t      flow_class_i[Ports][Ports][2],
    output logic [Ports-1:0] source_least_o[Ports],
    output logic [Ports-1:0] destination_least_o[Ports]
);

  logic [Ports-1:0] source_least[Ports], destination_least[Ports];

  for (genvar p = 0; p < Ports; p++) begin : gen_ports
    logic unused;
    if (ByOrder) begin : gen_by_order
      logic [2*Ports-1:0] unused_flow;
      for (genvar o = 0; o < Ports; o++) begin : gen_others
        logic [Ports-1:0] before_from, before_to;
        for (genvar i = 0; i < Ports; i++) begin : gen_before
          assign before_from[i] = valid_i[p][i] && goes_first(class_i[p][i], class_i[p][o], 1'b0);
          assign before_to[i]   = valid_i[i][p] && goes_first(class_i[i][p], class_i[o][p], 1'b0);
        end
        assign source_least[p][o]      = valid_i[p][o] && before_from == '0;
        assign destination_least[o][p] = valid_i[o][p] && before_to == '0;
        assign unused_flow[2*o]        = ^flow_valid_i[p][o];
        assign unused_flow[2*o+1]      = ^{flow_class_i[p][o][0], flow_class_i[p][o][1]};
      end
      assign unused = ^unused_flow;
    end else begin : gen_by_class
      // By flow and port at the other end.
      logic [2*Ports-1:0] from_valid, from_least, to_valid, to_least;
      class_set_t from_has[2*Ports], from_lesser[2*Ports], to_has[2*Ports], to_lesser[2*Ports];
      class_set_t unused_from, unused_to;
      logic [Ports-1:0] unused_class;

      for (genvar i = 0; i < 2 * Ports; i++) begin : gen_flows
        localparam int unsigned Flow = i / Ports, Other = i % Ports;
        size_class_t from_class, to_class;
        assign from_class     = flow_class_i[p][Other][Flow];
        assign to_class       = flow_class_i[Other][p][Flow];
        assign from_valid[i]  = flow_valid_i[p][Other][Flow];
        assign to_valid[i]    = flow_valid_i[Other][p][Flow];
        assign from_has[i]    = only_class(from_class) & {SizeClasses{from_valid[i]}};
        assign to_has[i]      = only_class(to_class) & {SizeClasses{to_valid[i]}};
        assign from_lesser[i] = lesser_classes(from_class);
        assign to_lesser[i]   = lesser_classes(to_class);
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
      for (genvar o = 0; o < Ports; o++) begin : gen_others
        assign destination_least[o][p] = to_least[o] || to_least[Ports+o];
        assign unused_class[o]         = ^class_i[p][o];
      end
      assign unused = ^{valid_i[p], unused_class};
    end
  end

  always_ff @(posedge clk_i) begin
    source_least_o      <= source_least;
    destination_least_o <= destination_least;
  end

endmodule
