/// Classifies the memory blocks of a port by the first block of each message. It is in the receive
/// clock; its register is that of the crossing behind it.
module em_switch_identify
  import em_pkg::*;
  import em_link_pkg::*;
  import em_switch_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input  rx_memory_t memory_i,
    output logic       valid_o,
    output item_t      item_o
);

  kind_e kind, kind_q;
  logic [7:0] sub_type;
  logic [3:0] opcode;

  assign sub_type = memory_i.block.payload[15:8];
  assign opcode   = memory_i.block.payload[19:16];

  always_comb begin
    kind = KindOther;
    case (sub_type)
      SubStart: begin
        case (opcode)
          OpReadResponse, OpPostedWrite, OpAcknowledgedWrite: kind = KindChunk;
          OpRead, OpCompareAndSwap, OpFetchAndAdd, OpSwap, OpAnd, OpOr, OpXor: kind = KindRequest;
          default: kind = KindUnknown;
        endcase
      end
      SubNotification: kind = KindNotification;
      SubSingle: kind = KindStatus;
      default: kind = KindOther;
    endcase
    if (!memory_i.first) kind = kind_q;
  end

  assign valid_o = memory_i.valid;
  assign item_o  = '{
      kind: kind,
      first: memory_i.first,
      last: memory_i.last,
      ending: memory_i.ending,
      block: memory_i.block
  };

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) kind_q <= KindOther;
    else if (memory_i.valid) kind_q <= kind;
  end

endmodule
