/// Tells EDM's control blocks from all others, and checks them: sync header, type, sub-type, CRC-8.
/// docs/internals/wire.md says which errors of the line this cannot miss.
module em_control_decode
  import em_pkg::*;
(
    input  logic [1:0]             header_i,
    input  logic [PayloadBits-1:0] payload_i,

    /// An EDM control block that passed every check.
    output logic                   edm_o,
    output logic [7:0]             sub_type_o,
    output logic [ContentBits-1:0] content_o,
    // The first check that failed: corruption, which disables the link.
    output logic                   bad_sync_o,
    output logic                   bad_type_o,
    output logic                   bad_sub_type_o,
    output logic                   bad_crc_o
);

  control_t control;
  logic is_control, is_type, is_edm, is_sub_type, is_crc;

  /// Bit by bit in line order, reflected.
  function automatic logic [7:0] crc8(logic [ContentBits+7:0] covered);
    logic [7:0] poly;
    logic feedback;
    poly = {<<{Crc8Poly}};
    crc8 = Crc8Init;
    for (int unsigned i = 0; i < ContentBits + 8; i++) begin
      feedback = crc8[0] ^ covered[i];
      crc8     = {1'b0, crc8[7:1]} ^ (feedback ? poly : 8'h0);
    end
  endfunction

  assign control    = payload_i;
  assign is_control = header_i == SyncControl;
  assign is_edm     = control.block_type == BlockEdm;
  assign is_type    = control.block_type inside {
      BlockEdm, BlockControl, BlockControlOrdered, BlockControlStart, BlockOrderedControl,
      BlockOrderedOrdered, BlockOrderedStart, BlockStart, BlockTerminate0, BlockTerminate1,
      BlockTerminate2, BlockTerminate3, BlockTerminate4, BlockTerminate5, BlockTerminate6,
      BlockTerminate7};
  assign is_sub_type = control.sub_type inside {
      SubStart, SubTerminate, SubSingle, SubNotification, SubGrant};
  assign is_crc = control.crc == crc8({control.content, control.sub_type});

  assign bad_sync_o     = header_i != SyncControl && header_i != SyncData;
  assign bad_type_o     = is_control && !is_type;
  assign bad_sub_type_o = is_control && is_edm && !is_sub_type;
  assign bad_crc_o      = is_control && is_edm && is_sub_type && !is_crc;
  assign edm_o          = is_control && is_edm && is_sub_type && is_crc;
  assign sub_type_o     = control.sub_type;
  assign content_o      = control.content;

endmodule
