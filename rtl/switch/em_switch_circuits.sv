/// The unanswered grants of one source port, oldest first: they give the destination of its next
/// chunk. Hosts answer grants in order, so a grant keeps its place even if its destination port has
/// failed; it leads nowhere then.
module em_switch_circuits
  import em_pkg::*;
#(
    parameter int unsigned Ports = 8,
    /// Grants that can be open.
    parameter int unsigned Depth = 32,
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic clk_i,
    input logic rst_ni,
    /// The source has failed: all is forgotten.
    input logic clear_i,
    /// By destination.
    input logic [Ports-1:0] port_up_i,

    input  logic                      open_i,
    input  logic [PortWidth-1:0]      open_destination_i,
    input  logic [GrantBytesBits-1:0] open_bytes_i,
    /// There is room for what is decided now.
    output logic                      room_o,

    /// The oldest grant, and whether it leads to a port in service.
    output logic                 next_valid_o,
    output logic [PortWidth-1:0] next_destination_o,

    /// A chunk of so many bytes has come whole: it uses the oldest grant, if that allows so many.
    input  logic                      use_i,
    input  logic [GrantBytesBits-1:0] use_bytes_i,
    /// In the same cycle: it may pass.
    output logic                      allowed_o,
    /// The oldest grant, or what is left of it, stays unused.
    input  logic                      skip_i
);

  localparam int unsigned IndexWidth = $clog2(Depth);
  localparam int unsigned CountWidth = $clog2(Depth + 1);
  localparam logic [IndexWidth-1:0] IndexLast = IndexWidth'(Depth - 1);

  logic [PortWidth-1:0] destinations_q[Depth];
  logic [GrantBytesBits-1:0] bytes_q[Depth];
  logic [Depth-1:0] nowhere_q;
  logic [IndexWidth-1:0] head_q, tail_q;
  logic [CountWidth-1:0] count_q;
  logic [GrantBytesBits-1:0] left, rest;
  // State of the head, once a chunk has used a part of it.
  logic part_q;
  logic [GrantBytesBits-1:0] part_left_q;
  logic any, fits, pop;

  assign any  = count_q != '0;
  assign left = part_q ? part_left_q : bytes_q[head_q];
  assign fits = any && use_bytes_i <= left;
  assign rest = left - use_bytes_i;
  assign pop  = use_i && fits && rest == '0 || skip_i && any;

  assign next_destination_o = destinations_q[head_q];
  assign next_valid_o       = any && !nowhere_q[head_q] && port_up_i[next_destination_o];
  assign allowed_o          = use_i && fits && !nowhere_q[head_q] && port_up_i[next_destination_o];
  // One that is decided when this is read is opened two cycles later, before the next one is.
  assign room_o             = count_q < CountWidth'(Depth - 1);

  function automatic logic [IndexWidth-1:0] after(logic [IndexWidth-1:0] index);
    return (index == IndexLast) ? '0 : index + 1'b1;
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {head_q, tail_q, count_q, part_q} <= '0;
    end else if (clear_i) begin
      {head_q, tail_q, count_q, part_q} <= '0;
    end else begin
      if (pop) head_q <= after(head_q);
      if (open_i) tail_q <= after(tail_q);
      count_q <= count_q + CountWidth'(open_i) - CountWidth'(pop);
      if (pop) part_q <= 1'b0;
      else if (use_i && fits) part_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (use_i && fits) part_left_q <= rest;
    for (int unsigned i = 0; i < Depth; i++) begin
      if (!port_up_i[destinations_q[i]]) nowhere_q[i] <= 1'b1;
    end
    if (open_i) begin
      destinations_q[tail_q] <= open_destination_i;
      bytes_q[tail_q]        <= open_bytes_i;
      nowhere_q[tail_q]      <= !port_up_i[open_destination_i];
    end
  end

endmodule
