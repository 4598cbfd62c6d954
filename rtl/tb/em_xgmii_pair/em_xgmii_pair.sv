/// Encoder and decoder back to back, and the block between them.
module em_xgmii_pair (
    input logic clk_i,
    input logic rst_ni,

    input  logic [63:0] data_i,
    input  logic [ 7:0] control_i,
    output logic [ 1:0] hdr_o,
    output logic [63:0] block_o,
    output logic        valid_o,
    output logic [63:0] data_o,
    output logic [ 7:0] control_o,

    /// In place of the encoder's.
    input logic        other_i,
    input logic [ 1:0] other_hdr_i,
    input logic [63:0] other_block_i
);

  logic valid, ready;

  em_xgmii_enc u_enc (
      .clk_i,
      .rst_ni,
      .slot_i            (1'b1),
      .xgmii_data_i      (data_i),
      .xgmii_control_i   (control_i),
      .xgmii_ready_o     (ready),
      .encoder_ready_i   (1'b1),
      .encoded_tx_valid_o(valid),
      .encoded_tx_hdr_o  (hdr_o),
      .encoded_tx_data_o (block_o)
  );

  em_xgmii_dec u_dec (
      .clk_i,
      .rst_ni,
      .encoded_rx_valid_i(valid && ready),
      .encoded_rx_hdr_i  (other_i ? other_hdr_i : hdr_o),
      .encoded_rx_data_i (other_i ? other_block_i : block_o),
      .xgmii_valid_o     (valid_o),
      .xgmii_data_o      (data_o),
      .xgmii_control_o   (control_o)
  );

endmodule
