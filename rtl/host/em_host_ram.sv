/// A memory with one write port and one read port. A read in the same edge as a write to its
/// address returns the new word.
module em_host_ram #(
    parameter int unsigned Width = 64,
    parameter int unsigned Depth = 16,
    localparam int unsigned AddressWidth = (Depth > 1) ? $clog2(Depth) : 1
) (
    input logic clk_i,

    input logic                    write_i,
    input logic [AddressWidth-1:0] write_address_i,
    input logic [Width-1:0]        write_data_i,

    /// Without it, `read_data_o` stays.
    input  logic                    read_i,
    input  logic [AddressWidth-1:0] read_address_i,
    output logic [Width-1:0]        read_data_o
);

  logic [Width-1:0] words_q[Depth];
  logic [Width-1:0] read_q, forward_q;
  logic is_forward_q;

  assign read_data_o = is_forward_q ? forward_q : read_q;

  always_ff @(posedge clk_i) begin
    if (write_i) words_q[write_address_i] <= write_data_i;
    if (read_i) begin
      read_q       <= words_q[read_address_i];
      forward_q    <= write_data_i;
      is_forward_q <= write_i && write_address_i == read_address_i;
    end
  end

endmodule
