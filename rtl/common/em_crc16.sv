/// CRC-16 of a read-modify-write request with a 40-bit address: CRC-16/IBM-SDLC.
/// The register begins with all ones, and its complement is sent.
module em_crc16 (
    input  logic [15:0] crc_i,
    input  logic [63:0] data_i,
    /// How many octets of `data_i` count, from the lowest on: 0 to 8.
    input  logic [ 3:0] octets_i,
    output logic [15:0] crc_o
);

  em_crc #(
      .Width(16),
      .Poly (16'h1021)
  ) u_crc (
      .crc_i,
      .data_i,
      .octets_i,
      .crc_o
  );

endmodule
