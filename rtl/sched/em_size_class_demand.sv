/// What a port asks for, a cycle later: checked, by peer, and with its size class.
module em_size_class_demand
  import em_pkg::*;
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 8,
    parameter int unsigned TagWidth = 16,
    parameter int unsigned ChunkBytes = 256,
    localparam int unsigned PortWidth = $clog2(Ports),
    parameter logic [PortWidth-1:0] Port = '0
) (
    input logic clk_i,
    input logic rst_ni,

    input ask_t ask_i,

    /// A bit for the peer, in one flow or in the other.
    output logic [Ports-1:0]    responses_o,
    output logic [Ports-1:0]    writes_o,
    output demand_t             demand_o,
    output logic [TagWidth-1:0] tag_o,
    /// Peer or size are invalid.
    output logic                invalid_o
);

  logic invalid;
  logic [Ports-1:0] peer;

  for (genvar o = 0; o < Ports; o++) begin : gen_peers
    assign peer[o] = ask_i.valid && !invalid && ask_i.peer == node_t'(o);
  end
  assign invalid = ask_i.bytes == '0 || ask_i.peer == node_t'(Port) ||
                   (NodeBits + 1)'(ask_i.peer) >= (NodeBits + 1)'(Ports);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      responses_o <= '0;
      writes_o    <= '0;
      invalid_o   <= 1'b0;
    end else begin
      responses_o <= ask_i.response ? peer : '0;
      writes_o    <= ask_i.response ? '0 : peer;
      invalid_o   <= ask_i.valid && invalid;
    end
  end

  log_t size_log;
  assign size_log = log2_eighths(ask_i.bytes);

  always_ff @(posedge clk_i) begin
    demand_o.bytes      <= ask_i.bytes;
    demand_o.beyond     <= ask_i.bytes - bytes_t'(ChunkBytes);
    demand_o.size_log   <= size_log;
    demand_o.size_class <= size_class(size_log, size_log);
    tag_o               <= ask_i.tag[TagWidth-1:0];
  end

endmodule
