/// Decodes blocks to XGMII, 64 bits wide: clause 49's decoder, each block by itself. A block that
/// is not Ethernet's becomes eight errors.
///
/// The order of blocks is not checked here: em_phy_rx has done that.
module em_xgmii_dec
  import em_pkg::*;
  import em_link_pkg::*;
  import em_xgmii_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input  logic        encoded_rx_valid_i,
    input  logic [ 1:0] encoded_rx_hdr_i,
    input  logic [63:0] encoded_rx_data_i,
    output logic        xgmii_valid_o,
    output logic [63:0] xgmii_data_o,
    /// Of each octet: it is a control character.
    output logic [ 7:0] xgmii_control_o
);

  logic [63:0] payload, data;
  logic [7:0] block_type, control, known;
  logic [63:0] characters;
  logic [2:0] octets;
  logic low_ordered, high_ordered, sound;

  assign payload    = encoded_rx_data_i;
  assign block_type = payload[7:0];
  assign octets     = terminate_octets(block_type);

  for (genvar i = 0; i < 8; i++) begin : gen_lane
    character_t character;
    assign character             = character_of(payload[8+7*i+:7]);
    assign known[i]              = character.known;
    assign characters[8*i+:8] = character.character;
  end

  function automatic logic [7:0] sequence_of(logic [3:0] code);
    return (code == 4'hf) ? XgmiiSignal : XgmiiSequence;
  endfunction

  assign low_ordered = block_type inside {
      BlockOrderedControl, BlockOrderedOrdered, BlockOrderedStart};
  assign high_ordered = block_type inside {BlockControlOrdered, BlockOrderedOrdered};

  always_comb begin
    data    = characters;
    control = '1;
    sound   = 1'b1;
    if (encoded_rx_hdr_i == SyncData) begin
      data    = payload;
      control = '0;
    end else if (encoded_rx_hdr_i != SyncControl) begin
      sound = 1'b0;
    end else if (block_type == BlockControl) begin
      sound = &known;
    end else if (block_type == BlockStart) begin
      data    = {payload[63:8], XgmiiStart};
      control = 8'h01;
    end else if (has_terminate(block_type)) begin
      for (int unsigned i = 0; i < 8; i++) begin
        if (i < 32'(octets)) begin
          data[8*i+:8] = payload[(8*i+8)%64+:8];
          control[i]   = 1'b0;
        end else if (i == 32'(octets)) begin
          data[8*i+:8] = XgmiiTerminate;
        end else if (!known[i]) begin
          sound = 1'b0;
        end
      end
    end else if (low_ordered || high_ordered || block_type == BlockControlStart) begin
      if (low_ordered) begin
        data[31:0]   = {payload[31:8], sequence_of(payload[35:32])};
        control[3:0] = 4'h1;
      end else if (known[3:0] != '1) begin
        sound = 1'b0;
      end
      if (high_ordered || block_type != BlockOrderedControl) begin
        data[63:40]  = payload[63:40];
        data[39:32]  = high_ordered ? sequence_of(payload[39:36]) : XgmiiStart;
        control[7:4] = 4'h1;
      end else if (known[7:4] != '1) begin
        sound = 1'b0;
      end
    end else begin
      sound = 1'b0;
    end
    if (!sound) begin
      data    = {8{XgmiiError}};
      control = '1;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      xgmii_valid_o   <= 1'b0;
      xgmii_data_o    <= {8{XgmiiIdle}};
      xgmii_control_o <= '1;
    end else begin
      xgmii_valid_o <= encoded_rx_valid_i;
      if (encoded_rx_valid_i) begin
        xgmii_data_o    <= data;
        xgmii_control_o <= control;
      end
    end
  end

endmodule
