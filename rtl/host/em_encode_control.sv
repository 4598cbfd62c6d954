/// Encodes a 66-bit EDM control block from its sub-type and content. Combinational.
module em_encode_control
  import em_pkg::*;
  import em_link_pkg::*;
(
    input  logic [7:0]             sub_type_i,
    input  logic [ContentBits-1:0] content_i,
    output block_t                 block_o
);

  control_t control;

  assign control.block_type = BlockEdm;
  assign control.sub_type   = sub_type_i;
  assign control.content    = content_i;
  assign block_o            = '{payload: control, header: SyncControl};

  em_crc8 u_crc8 (
      .sub_type_i,
      .content_i,
      .crc_o(control.crc)
  );

endmodule
