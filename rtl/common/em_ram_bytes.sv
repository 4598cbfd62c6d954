/// A memory as em_ram whose write port has a bit a byte: tools infer block RAM from it. A read
/// returns what was written in earlier cycles.
module em_ram_bytes #(
    parameter int unsigned Bytes = 64,
    parameter int unsigned Depth = 512,
    localparam int unsigned AddressWidth = (Depth > 1) ? $clog2(Depth) : 1
) (
    input logic clk_i,

    input logic [Bytes-1:0]        write_i,
    input logic [AddressWidth-1:0] write_address_i,
    input logic [8*Bytes-1:0]      write_data_i,

    input  logic                    read_i,
    input  logic [AddressWidth-1:0] read_address_i,
    /// In the next cycle, until the next read.
    output logic [8*Bytes-1:0]      read_data_o
);

  logic [8*Bytes-1:0] words_q[Depth];
  logic [8*Bytes-1:0] data_q;

  assign read_data_o = data_q;

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Bytes; i++) begin
      if (write_i[i]) words_q[write_address_i][8*i+:8] <= write_data_i[8*i+:8];
    end
    if (read_i) data_q <= words_q[read_address_i];
  end

endmodule
