/// A whole way: XGMII, encoder, em_phy, its line back into it, decoder, XGMII.
module em_phy_loop
  import em_link_pkg::*;
#(
    parameter bit FewStages = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,
    input logic strict_i,

    input  logic [63:0] tx_data_i,
    input  logic [ 7:0] tx_control_i,
    output logic        tx_ready_o,
    output logic [63:0] rx_data_o,
    output logic [ 7:0] rx_control_o,
    output logic        rx_valid_o,

    input  tx_memory_t  memory_i,
    output logic        memory_ready_o,
    output rx_memory_t  memory_o,
    output logic        line_valid_o,
    output logic [ 1:0] line_hdr_o,
    output logic        up_o,
    /// Anything that is not as it should be.
    output logic        wrong_o
);

  logic encoder_ready, overrun, dry;
  line_slot_t encoded_tx, encoded_rx, line;
  rx_events_t events;

  assign line_valid_o = line.valid;
  assign line_hdr_o   = line.block.header;
  assign wrong_o      = overrun || dry || events != '0;

  em_xgmii_enc u_enc (
      .clk_i,
      .rst_ni,
      .slot_i            (1'b1),
      .xgmii_data_i      (tx_data_i),
      .xgmii_control_i   (tx_control_i),
      .xgmii_ready_o     (tx_ready_o),
      .encoder_ready_i   (encoder_ready),
      .encoded_tx_valid_o(encoded_tx.valid),
      .encoded_tx_hdr_o  (encoded_tx.block.header),
      .encoded_tx_data_o (encoded_tx.block.payload)
  );

  em_phy #(
      .FewStages(FewStages)
  ) u_phy (
      .tx_clk_i         (clk_i),
      .tx_rst_ni        (rst_ni),
      .rx_clk_i         (clk_i),
      .rx_rst_ni        (rst_ni),
      .line_i           (line),
      .signal_i         (1'b1),
      .fail_i           (1'b0),
      .allow_i          (1'b0),
      .up_o,
      .events_o         (events),
      .memory_o,
      .encoded_o        (encoded_rx),
      .slot_i           (1'b1),
      .strict_i,
      .memory_i,
      .memory_ready_o,
      .encoder_ready_o  (encoder_ready),
      .encoded_i        (encoded_tx),
      .encoder_overrun_o(overrun),
      .memory_dry_o     (dry),
      .line_o           (line)
  );

  em_xgmii_dec u_dec (
      .clk_i,
      .rst_ni,
      .encoded_rx_valid_i(encoded_rx.valid),
      .encoded_rx_hdr_i  (encoded_rx.block.header),
      .encoded_rx_data_i (encoded_rx.block.payload),
      .xgmii_valid_o     (rx_valid_o),
      .xgmii_data_o      (rx_data_o),
      .xgmii_control_o   (rx_control_o)
  );

endmodule
