/// Distinguishes EDM's control blocks from all others, and checks them: sync header, type,
/// sub-type, CRC-8. docs/internals/wire.md says which errors of the line are always detected.
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
  logic [7:0] crc;
  logic is_control, is_type, is_edm, is_sub_type, is_crc;

  em_crc8 u_crc (
      .sub_type_i(control.sub_type),
      .content_i (control.content),
      .crc_o     (crc)
  );

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
  assign is_crc = control.crc == crc;

  assign bad_sync_o     = header_i != SyncControl && header_i != SyncData;
  assign bad_type_o     = is_control && !is_type;
  assign bad_sub_type_o = is_control && is_edm && !is_sub_type;
  assign bad_crc_o      = is_control && is_edm && is_sub_type && !is_crc;
  assign edm_o          = is_control && is_edm && is_sub_type && is_crc;
  assign sub_type_o     = control.sub_type;
  assign content_o      = control.content;

endmodule
