/// Encodes XGMII, 64 bits wide, to blocks: clause 49's encoder. A word that no block can carry
/// becomes eight errors, as does any word that has no place within a frame; that ends the frame.
/// The rest of the frame becomes idles: without its start the other end would treat it as
/// corruption.
///
/// A word is taken for each block that em_phy_tx requests, and is there in the next slot.
module em_xgmii_enc
  import em_pkg::*;
  import em_link_pkg::*;
  import em_xgmii_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,
    input logic slot_i,

    input  logic [63:0] xgmii_data_i,
    /// Of each octet: it is a control character.
    input  logic [ 7:0] xgmii_control_i,
    /// The word is taken.
    output logic        xgmii_ready_o,

    input  logic        encoder_ready_i,
    output logic        encoded_tx_valid_o,
    output logic [ 1:0] encoded_tx_hdr_o,
    output logic [63:0] encoded_tx_data_o
);

  // Of each lane: data, or a character that a code carries. Of each half: an ordered set.
  logic [7:0] data, coded;
  logic [1:0] ordered;
  logic [3:0] ordered_code[2];
  logic [7:0][6:0] codes;

  for (genvar i = 0; i < 8; i++) begin : gen_lane
    code_t code;
    assign code     = code_of(xgmii_data_i[8*i+:8]);
    assign data[i]  = !xgmii_control_i[i];
    assign coded[i] = xgmii_control_i[i] && code.known;
    assign codes[i] = code.code;
  end
  for (genvar i = 0; i < 2; i++) begin : gen_ordered
    assign ordered[i] = xgmii_control_i[4*i] && &data[4*i+1+:3] &&
        xgmii_data_i[32*i+:8] inside {XgmiiSequence, XgmiiSignal};
    assign ordered_code[i] = (xgmii_data_i[32*i+:8] == XgmiiSignal) ? 4'hf : 4'h0;
  end

  // A word is halves, or data up to a terminate and control characters behind it.
  logic low_coded, high_coded, low_ordered, high_ordered, high_start;
  assign low_coded    = &coded[3:0];
  assign high_coded   = &coded[7:4];
  assign low_ordered  = ordered[0];
  assign high_ordered = ordered[1];
  assign high_start   = xgmii_control_i[4] && xgmii_data_i[39:32] == XgmiiStart && &data[7:5];

  logic [7:0] terminates;
  logic [63:0] terminated[8];
  for (genvar i = 0; i < 8; i++) begin : gen_terminate
    localparam logic [7:0] Before = 8'((9'd1 << i) - 9'd1);
    localparam logic [7:0] Behind = ~8'((9'd2 << i) - 9'd1);
    localparam logic [63:0] Data = 64'((65'd1 << (8 + 8 * i)) - 65'd256);
    localparam logic [63:0] Codes = ~64'((65'd1 << (15 + 7 * i)) - 65'd1);
    assign terminates[i] = xgmii_control_i[i] && xgmii_data_i[8*i+:8] == XgmiiTerminate &&
        (data & Before) == Before && (coded & Behind) == Behind;
    assign terminated[i] = ({xgmii_data_i[55:0], 8'h00} & Data) | ({codes, 8'h00} & Codes) |
        64'(Terminates[i]);
  end

  logic [55:0] low, high;
  logic [7:0] block_type;
  block_t word, block;
  logic in_frame_q, continues, starts;

  always_comb begin
    low  = low_coded ? 56'(codes[3:0]) : 56'(xgmii_data_i[31:8]);
    high = high_coded ? {codes[7:4], 28'b0} : {xgmii_data_i[63:40], 32'b0};
    if (low_ordered) low[27:24] = ordered_code[0];
    if (high_ordered) high[31:28] = ordered_code[1];
    unique case ({low_coded, low_ordered, high_coded, high_ordered, high_start})
      5'b10_100: block_type = BlockControl;
      5'b10_010: block_type = BlockControlOrdered;
      5'b10_001: block_type = BlockControlStart;
      5'b01_100: block_type = BlockOrderedControl;
      5'b01_010: block_type = BlockOrderedOrdered;
      5'b01_001: block_type = BlockOrderedStart;
      default:   block_type = BlockEdm;
    endcase
    word = '{header: SyncControl, payload: {high | low, block_type}};
    if (block_type == BlockEdm) word = Abort;
    if (xgmii_control_i[0] && xgmii_data_i[7:0] == XgmiiStart && &data[7:1]) begin
      word.payload = {xgmii_data_i[63:8], BlockStart};
    end
    for (int unsigned i = 0; i < 8; i++) if (terminates[i]) word.payload = terminated[i];
    if (&data) word = '{header: SyncData, payload: xgmii_data_i};
  end

  assign continues = word.header == SyncData || terminates != '0;
  assign starts    = word.header == SyncControl && has_start(word.payload[7:0]);

  always_comb begin
    block = word;
    if (in_frame_q && !continues) block = Abort;
    if (!in_frame_q && continues) block = Idle;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) in_frame_q <= 1'b0;
    else if (xgmii_ready_o) in_frame_q <= in_frame_q ? word.header == SyncData : starts;
  end

  assign xgmii_ready_o = slot_i && encoder_ready_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) encoded_tx_valid_o <= 1'b0;
    else if (slot_i) encoded_tx_valid_o <= encoder_ready_i;
  end

  always_ff @(posedge clk_i) begin
    if (slot_i) begin
      encoded_tx_hdr_o  <= block.header;
      encoded_tx_data_o <= block.payload;
    end
  end

endmodule
