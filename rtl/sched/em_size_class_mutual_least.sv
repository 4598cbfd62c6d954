/// Which candidates are of the least class of their source, and of their destination: registered,
/// so that it is found beside the update of the candidates and not before the choice among them.
///
/// For few ports each two candidates of a port are compared. For many there is a bit for each class
/// that either flow of a pair has: so the least class does not wait for which of them goes first.
module em_size_class_mutual_least
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

  function automatic class_set_t classes_of(logic [1:0] valid, size_class_t of[2]);
    return only_class(of[0]) & {SizeClasses{valid[0]}} |
           only_class(of[1]) & {SizeClasses{valid[1]}};
  endfunction

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
      // By port at the other end.
      logic [Ports-1:0] to_valid, to_least;
      class_set_t from_has[Ports], from_lesser[Ports], to_has[Ports], to_lesser[Ports];
      class_set_t unused_from, unused_to;

      for (genvar o = 0; o < Ports; o++) begin : gen_others
        assign to_valid[o]             = valid_i[o][p];
        assign from_has[o]             = classes_of(flow_valid_i[p][o], flow_class_i[p][o]);
        assign to_has[o]               = classes_of(flow_valid_i[o][p], flow_class_i[o][p]);
        assign from_lesser[o]          = lesser_classes(class_i[p][o]);
        assign to_lesser[o]            = lesser_classes(class_i[o][p]);
        assign destination_least[o][p] = to_least[o];
      end

      em_size_class_least #(
          .Inputs(Ports)
      ) u_source (
          .valid_i (valid_i[p]),
          .has_i   (from_has),
          .lesser_i(from_lesser),
          .least_o (source_least[p]),
          .before_o(unused_from)
      );

      em_size_class_least #(
          .Inputs(Ports)
      ) u_destination (
          .valid_i (to_valid),
          .has_i   (to_has),
          .lesser_i(to_lesser),
          .least_o (to_least),
          .before_o(unused_to)
      );

      assign unused = 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    source_least_o      <= source_least;
    destination_least_o <= destination_least;
  end

endmodule
