/// CRC-8 of an EDM control block, over its sub-type and content.
module em_crc8
  import em_pkg::*;
(
    input  logic [7:0]             sub_type_i,
    input  logic [ContentBits-1:0] content_i,
    output logic [7:0]             crc_o
);

  localparam int unsigned Octets = ContentBits / 8 + 1;

  em_crc #(
      .Width (8),
      .Poly  (Crc8Poly),
      .Octets(Octets)
  ) u_crc (
      .crc_i   (Crc8Init),
      .data_i  ({content_i, sub_type_i}),
      .octets_i(3'(Octets)),
      .crc_o
  );

endmodule
