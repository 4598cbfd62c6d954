/// Encodes requests, notifications and statuses from their fields, block by block.
///
/// The first block is in the output register one edge after the fields were taken; the others
/// follow without a gap. An address above 40 bits takes the long form.
module em_encode_request
  import em_pkg::*;
  import em_link_pkg::*;
  import em_host_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,
    /// Drops what is under way.
    input logic flush_i,

    input  logic            valid_i,
    output logic            ready_o,
    input  control_fields_t fields_i,

    output tx_memory_t memory_o,
    input  logic       memory_ready_i
);

  typedef enum logic [2:0] {
    StepFirst,
    StepAddress,
    StepOperand,
    StepSecond,
    StepLast
  } step_e;

  control_fields_t fields_q, fields;
  step_e step_q, step_d;
  tx_memory_t out_q, out_d;
  logic [31:0] crc32_q, crc32;
  logic [15:0] crc16_q, crc16;
  logic [63:0] covered;
  logic [3:0] octets;
  logic [ContentBits-1:0] first, content;
  logic [7:0] sub_type;
  block_t control_block;
  logic load, is_data, is_rmw, is_long;
  logic [63:0] word;

  // The first block comes from the fields themselves, the others from the kept ones.
  assign fields  = (step_q == StepFirst) ? fields_i : fields_q;
  assign is_rmw  = fields.opcode != OpRead;
  assign is_long = fields.address[63:40] != '0;

  assign ready_o  = step_q == StepFirst && !out_q.valid;
  assign load     = (step_q == StepFirst) ? valid_i && ready_o : !out_q.valid || memory_ready_i;
  assign memory_o = out_q;

  always_comb begin
    notification_t notification;
    status_t status;
    rreq_ms_t read;
    rmwreq_ms_t rmw;
    notification = '{
        acknowledged: fields.acknowledged, node: fields.node, id: fields.id,
        length: LengthBits'(fields.bytes), default: '0};
    status = '{
        opcode: fields.opcode, node: fields.node, id: fields.id, code: fields.code, default: '0};
    read = '{
        opcode: fields.opcode, node: fields.node, id: fields.id,
        length: LengthBits'(fields.bytes), default: '0};
    rmw = '{
        opcode: fields.opcode, node: fields.node, id: fields.id,
        address_low: is_long ? '0 : fields.address[15:0], default: '0};
    unique case (fields.sub_type)
      SubNotification: first = notification;
      SubSingle:       first = status;
      default:         first = is_rmw ? rmw : read;
    endcase
  end

  assign sub_type = (step_q == StepFirst) ? fields.sub_type : SubTerminate;
  assign is_data  = step_q inside {StepAddress, StepOperand, StepSecond};

  always_comb begin
    rreq40_mt_t read_end;
    rmwreq40_mt_t rmw_end;
    crc32_mt_t long_end;
    read_end = '{address: fields.address[39:0]};
    rmw_end  = '{address_high: fields.address[39:16], crc: ~crc16};
    long_end = '{tail_octet: '0, crc: ~crc32};
    if (step_q == StepFirst) content = first;
    else if (is_long) content = long_end;
    else content = is_rmw ? rmw_end : read_end;
  end

  always_comb begin
    unique case (step_q)
      StepAddress: word = fields.address;
      StepOperand: word = fields.operands[0];
      default:     word = fields.operands[1];
    endcase
  end

  // In requests the node counts as zero: the switch changes it.
  always_comb begin
    covered = word;
    octets  = 4'd8;
    if (step_q == StepFirst && !valid_i) begin
      octets = '0;
    end else if (step_q == StepFirst) begin
      covered                = 64'(first);
      covered[4+:NodeBits]   = '0;
      octets                 = 4'd5;
    end else if (step_q == StepLast) begin
      covered = is_long ? '0 : 64'(fields.address[39:16]);
      octets  = is_long ? 4'd1 : 4'd3;
    end
  end

  em_crc32c u_crc32c (
      .crc_i   ((step_q == StepFirst) ? '1 : crc32_q),
      .data_i  (covered),
      .octets_i(octets),
      .crc_o   (crc32)
  );

  em_crc16 u_crc16 (
      .crc_i   ((step_q == StepFirst) ? '1 : crc16_q),
      .data_i  (covered),
      .octets_i(octets),
      .crc_o   (crc16)
  );

  em_encode_control u_control (
      .sub_type_i(sub_type),
      .content_i (content),
      .block_o   (control_block)
  );

  always_comb begin
    unique case (step_q)
      StepFirst: begin
        if (fields.sub_type != SubStart) step_d = StepFirst;
        else if (is_long) step_d = StepAddress;
        else step_d = is_rmw ? StepOperand : StepLast;
      end
      StepAddress: step_d = is_rmw ? StepOperand : StepLast;
      StepOperand: step_d = (fields.opcode == OpCompareAndSwap) ? StepSecond : StepLast;
      StepSecond:  step_d = StepLast;
      default:     step_d = StepFirst;
    endcase
  end

  always_comb begin
    out_d = out_q;
    if (memory_ready_i) out_d.valid = 1'b0;
    if (load) begin
      out_d.valid  = 1'b1;
      out_d.framed = fields.sub_type == SubStart;
      out_d.last   = step_d == StepFirst;
      out_d.block  = is_data ? '{payload: word, header: SyncData} : control_block;
    end
    if (flush_i) out_d.valid = 1'b0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      step_q <= StepFirst;
      out_q  <= '0;
    end else begin
      out_q <= out_d;
      if (flush_i) step_q <= StepFirst;
      else if (load) step_q <= step_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (load) begin
      crc32_q <= crc32;
      crc16_q <= crc16;
      if (step_q == StepFirst) fields_q <= fields_i;
    end
  end

endmodule
