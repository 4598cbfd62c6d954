/// What a port asks for, a cycle later: checked, by peer, and with its size class.
module em_size_class_demand
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

    input logic                 valid_i,
    input logic                 response_i,
    input logic [PortWidth-1:0] peer_i,
    input bytes_t               bytes_i,
    input logic [TagWidth-1:0]  tag_i,

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
    assign peer[o] = valid_i && !invalid && peer_i == PortWidth'(o);
  end
  assign invalid = bytes_i == '0 || peer_i == Port ||
                   (PortWidth + 1)'(peer_i) >= (PortWidth + 1)'(Ports);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      responses_o <= '0;
      writes_o    <= '0;
      invalid_o   <= 1'b0;
    end else begin
      responses_o <= response_i ? peer : '0;
      writes_o    <= response_i ? '0 : peer;
      invalid_o   <= valid_i && invalid;
    end
  end

  log_t size_log;
  assign size_log = log2_eighths(bytes_i);

  always_ff @(posedge clk_i) begin
    demand_o.bytes      <= bytes_i;
    demand_o.beyond     <= bytes_i - bytes_t'(ChunkBytes);
    demand_o.size_log   <= size_log;
    demand_o.size_class <= size_class(size_log, size_log);
    tag_o               <= tag_i;
  end

endmodule
