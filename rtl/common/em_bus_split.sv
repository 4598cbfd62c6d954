/// Divides the register bus into windows of equal size, from address 0 on. An access behind the
/// last window is answered with an error.
module em_bus_split
  import em_bus_pkg::*;
#(
    parameter int unsigned Windows = 2,
    /// Address bits of a window.
    parameter int unsigned WindowBits = 10
) (
    input  request_t                request_i,
    output response_t               response_o,
    output request_t  [Windows-1:0] request_o,
    input  response_t [Windows-1:0] response_i
);

  localparam int unsigned IndexBits = AddressBits - WindowBits;

  logic [IndexBits-1:0] index;
  assign index = request_i.address[AddressBits-1:WindowBits];

  always_comb begin
    response_o       = '0;
    response_o.error = 1'b1;
    for (int unsigned w = 0; w < Windows; w++) begin
      request_o[w]         = request_i;
      request_o[w].valid   = request_i.valid && index == IndexBits'(w);
      request_o[w].address = AddressBits'(request_i.address[WindowBits-1:0]);
      if (index == IndexBits'(w)) response_o = response_i[w];
    end
  end

endmodule
