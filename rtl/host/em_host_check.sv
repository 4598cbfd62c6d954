/// Checks whether a request is valid, and converts it to its form inside the host. Combinational.
module em_host_check
  import em_pkg::*;
  import em_host_pkg::*;
#(
    parameter int unsigned Nodes        = 4,
    parameter int unsigned MessageBytes = 1024
) (
    input  node_t    node_i,
    input  request_t request_i,
    /// Words of its data, if it is a write.
    input  bytes_t   words_i,
    output logic     bad_o,
    output logic     write_o,
    output request_t request_o
);

  logic known, is_read, is_rmw;
  logic [64:0] past_end;

  assign write_o  = request_i.opcode inside {OpPostedWrite, OpAcknowledgedWrite};
  assign is_read  = request_i.opcode == OpRead;
  assign is_rmw   = request_i.opcode inside {
      OpCompareAndSwap, OpFetchAndAdd, OpSwap, OpAnd, OpOr, OpXor};
  assign known    = (NodeBits + 1)'(request_i.peer) < (NodeBits + 1)'(Nodes)
      && request_i.peer != node_i;
  assign past_end = request_i.address + 65'(request_i.bytes);

  assign bad_o = !known || !(write_o || is_read || is_rmw)
      || (!is_rmw && (request_i.bytes == '0 || request_i.bytes > bytes_t'(MessageBytes)))
      || (write_o && words_i != (request_i.bytes + bytes_t'(7)) >> 3);

  always_comb begin
    request_o = request_i;
    if (is_rmw) request_o.bytes = bytes_t'(8);
    // A posted write has 40 bits of address.
    if (write_o && past_end[64:40] != '0) request_o.opcode = OpAcknowledgedWrite;
  end

endmodule
