/// Multiplexes two sources of units to one transmitter, in turn where both wait. A unit is never
/// cut.
module em_host_mux
  import em_link_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,
    /// Nothing of before goes on.
    input logic flush_i,

    input  tx_memory_t first_i,
    output logic       first_ready_o,
    input  tx_memory_t second_i,
    output logic       second_ready_o,

    output tx_memory_t memory_o,
    input  logic       memory_ready_i
);

  logic open_q, second_q, choice, second;

  // The one that did not go last, if both wait.
  assign choice = second_i.valid && (!first_i.valid || !second_q);
  assign second = open_q ? second_q : choice;

  assign memory_o       = second ? second_i : first_i;
  assign first_ready_o  = memory_ready_i && !second;
  assign second_ready_o = memory_ready_i && second;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q   <= 1'b0;
      second_q <= 1'b0;
    end else if (flush_i) begin
      open_q <= 1'b0;
    end else if (memory_o.valid && memory_ready_i) begin
      open_q   <= !memory_o.last;
      second_q <= second;
    end
  end

endmodule
