/// CRC-32C (Castagnoli) of a chunk and of requests with a 64-bit address: CRC-32/ISCSI.
/// The register begins with all ones, and its complement is sent.
module em_crc32c (
    input  logic [31:0] crc_i,
    input  logic [63:0] data_i,
    /// How many octets of `data_i` count, from the lowest on: 0 to 8.
    input  logic [ 3:0] octets_i,
    output logic [31:0] crc_o
);

  em_crc #(
      .Width(32),
      .Poly (32'h1edc6f41)
  ) u_crc (
      .crc_i,
      .data_i,
      .octets_i,
      .crc_o
  );

endmodule
