/// A memory of one write port and one read port, with a registered read: tools infer block RAM from
/// it. A read returns the value written in an earlier cycle.
module em_ram #(
    parameter int unsigned Width = 66,
    parameter int unsigned Depth = 64,
    localparam int unsigned AddressWidth = (Depth > 1) ? $clog2(Depth) : 1
) (
    input logic clk_i,

    input logic                    write_i,
    input logic [AddressWidth-1:0] write_address_i,
    input logic [Width-1:0]        write_data_i,

    input  logic                    read_i,
    input  logic [AddressWidth-1:0] read_address_i,
    /// In the next cycle, until the next read.
    output logic [Width-1:0]        read_data_o
);

  logic [Width-1:0] words_q[Depth];
  logic [Width-1:0] data_q;

  assign read_data_o = data_q;

  always_ff @(posedge clk_i) begin
    if (write_i) words_q[write_address_i] <= write_data_i;
    if (read_i) data_q <= words_q[read_address_i];
  end

endmodule
