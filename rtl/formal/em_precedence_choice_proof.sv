/// em_precedence_choice asks and grants as em_size_class_choice does, whatever candidates, classes
/// and turn are in every cycle; where a destination that is willing for a candidate is so for all
/// of its class and of lesser ones.
module em_precedence_choice_proof
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 3,
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic                 clk_i,
    input size_class_t          class_next_i[Ports][Ports],
    input logic [PortWidth-1:0] turn_next_i,
    input logic [Ports-1:0]     valid_i[Ports],
    input logic [Ports-1:0]     willing_i[Ports]
);

  logic settled = 1'b0, settled_q = 1'b0;
  size_class_t classes[Ports][Ports];
  logic [PortWidth-1:0] turn_q;
  logic [Ports-1:0] asks[Ports], asked_q[Ports], granted[Ports];
  logic [Ports-1:0] class_asks[Ports], class_granted[Ports];

  em_precedence_choice #(
      .Ports(Ports)
  ) u_dut (
      .clk_i,
      .class_i     (classes),
      .class_next_i,
      .turn_i      (turn_q),
      .turn_next_i,
      .valid_i,
      .willing_i,
      .asks_o      (asks),
      .asked_i     (asked_q),
      .granted_o   (granted)
  );

  em_size_class_choice #(
      .Ports(Ports)
  ) u_class (
      .clk_i,
      .class_i  (classes),
      .turn_i   (turn_q),
      .valid_i,
      .willing_i,
      .asks_o   (class_asks),
      .asked_i  (asked_q),
      .granted_o(class_granted)
  );

  always_ff @(posedge clk_i) begin
    classes   <= class_next_i;
    turn_q    <= turn_next_i;
    asked_q   <= asks;
    settled   <= 1'b1;
    settled_q <= settled;
    for (int unsigned d = 0; d < Ports; d++) begin
      for (int unsigned i = 0; i < Ports * Ports; i++) begin
        assume (!willing_i[d][i/Ports] || willing_i[d][i%Ports] ||
                classes[i%Ports][d] > classes[i/Ports][d]);
      end
      if (settled) assert (asks[d] == class_asks[d]);
      if (settled_q) assert (granted[d] == class_granted[d]);
    end
  end

endmodule
