/// The host's state per destination, and the walk that clears it. After a reset it clears
/// everything; after the link failed it keeps only the generations of ids. No peer is reachable
/// then before the switch says so.
module em_host_destinations
  import em_pkg::*;
  import em_host_pkg::*;
#(
    parameter int unsigned Nodes = 4
) (
    input logic clk_i,
    input logic rst_ni,

    /// Begins a walk. Nothing is read or written during one.
    input  logic         walk_i,
    output logic         walking_o,
    output logic         last_o,

    input  logic         read_i,
    input  node_t        read_node_i,
    output destination_t destination_o,
    input  logic         write_i,
    input  node_t        write_node_i,
    input  destination_t destination_i
);

  localparam int unsigned IndexBits = (Nodes > 1) ? $clog2(Nodes) : 1;
  typedef logic [IndexBits-1:0] index_t;

  index_t walk_q;
  logic walking_q, writes_q, resetting_q;
  destination_t forgotten;

  /// A node that does not exist reads the word of node 0, which the caller ignores.
  function automatic index_t index(node_t node);
    return ((NodeBits + 1)'(node) < (NodeBits + 1)'(Nodes)) ? index_t'(node) : '0;
  endfunction

  assign walking_o   = walking_q;
  assign last_o      = walking_q && writes_q && walk_q == index_t'(Nodes - 1);

  always_comb begin
    forgotten      = '0;
    forgotten.down = !resetting_q;
    if (!resetting_q) forgotten.generations = destination_o.generations;
  end

  em_host_ram #(
      .Width($bits(destination_t)),
      .Depth(Nodes)
  ) u_words (
      .clk_i,
      .write_i        (walking_q ? writes_q : write_i),
      .write_address_i(walking_q ? walk_q : index(write_node_i)),
      .write_data_i   (walking_q ? forgotten : destination_i),
      .read_i         (walking_q || read_i),
      .read_address_i (walking_q ? walk_q : index(read_node_i)),
      .read_data_o    (destination_o)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      walk_q      <= '0;
      walking_q   <= 1'b1;
      writes_q    <= 1'b0;
      resetting_q <= 1'b1;
    end else if (!walking_q) begin
      walking_q <= walk_i;
    end else begin
      writes_q <= !writes_q;
      if (writes_q) walk_q <= (walk_q == index_t'(Nodes - 1)) ? '0 : walk_q + 1'b1;
      if (last_o) begin
        walking_q   <= 1'b0;
        resetting_q <= 1'b0;
      end
    end
  end

endmodule
