/// Reads the octets of a frame, without its check sequence, as a packet, or says why they are none:
/// the verdict of `Frame::parse` of crates/wire on any octets. Combinational.
module em_cxl_parse
  import em_cxl_pkg::*;
(
    input  frame_t  frame_i,
    /// More than a frame can have means longer.
    input  octets_t octets_i,
    output packet_t packet_o,
    output fault_e  fault_o
);

  typedef struct packed {
    logic [7:0] status;
    id_t        id;
    sequence_t  sequence_number;
  } response_fields_t;

  logic [8*(FrameOctetsMax-15)-1:0] body;
  logic [7:0] command, acked;
  response_fields_t response;
  mac_t from;
  data_t data;
  sequence_t nak, sack, ahead;
  logic is_negative, is_response, has_data, is_known;
  octets_t needs, response_needs, must_be;

  assign from    = frame_i[48+:MacBits];
  assign command = frame_i[112+:8];
  assign body    = frame_i[8*FrameOctetsMax-1:8*15];
  assign nak     = body[31:0];
  assign sack    = body[63:32];
  assign ahead   = sack - nak;
  assign acked   = body[71:64];

  assign is_negative = command == CommandSackNak || command == CommandSackNakAck;
  assign is_response = command == CommandReadResponse || command == CommandWriteResponse
                       || command == CommandSackNakAck;
  assign is_known    = command inside {CommandReadRequest, CommandWriteRequest,
                                       CommandMaskedWriteRequest, CommandReadResponse,
                                       CommandWriteResponse, CommandSackNak, CommandSackNakAck,
                                       CommandCongestion};
  assign response = (command == CommandSackNakAck) ? body[119:72] : body[47:0];
  assign has_data = command == CommandReadResponse
                    || (command == CommandSackNakAck && acked == CommandReadResponse);

  always_comb begin
    case (command)
      CommandMaskedWriteRequest: data = body[144+:512];
      CommandWriteRequest: data = body[80+:512];
      CommandSackNakAck: data = body[120+:512];
      default: data = body[48+:512];
    endcase
    // Octets of the fields; of a response, up to its status.
    case (command)
      CommandMaskedWriteRequest: needs = octets_t'(97);
      CommandWriteRequest: needs = octets_t'(89);
      CommandReadRequest: needs = octets_t'(25);
      CommandReadResponse: needs = octets_t'(85);
      CommandSackNak: needs = octets_t'(23);
      CommandSackNakAck: needs = has_data ? octets_t'(94) : octets_t'(30);
      default: needs = octets_t'(21);
    endcase
    response_needs = (command == CommandSackNakAck) ? octets_t'(30) : octets_t'(21);
    must_be        = (needs < octets_t'(FrameOctetsMin)) ? octets_t'(FrameOctetsMin) : needs;
  end

  // What is looked at first is said first.
  always_comb begin
    fault_o = FaultNone;
    if (octets_i < octets_t'(14)) fault_o = FaultShort;
    else if (frame_i[96+:16] != EtherType) fault_o = FaultForeign;
    else if (from[0]) fault_o = FaultSource;
    else if (octets_i < octets_t'(15)) fault_o = FaultShort;
    else if (!is_known) fault_o = FaultCommand;
    else if (is_negative && octets_i < octets_t'(23)) fault_o = FaultShort;
    else if (is_negative && (ahead == '0 || ahead[SequenceBits-1])) fault_o = FaultSackBeforeNak;
    else if (command == CommandSackNakAck && octets_i < octets_t'(24)) fault_o = FaultShort;
    else if (command == CommandSackNakAck && acked != CommandReadResponse
             && acked != CommandWriteResponse) begin
      fault_o = FaultAcked;
    end
    else if (is_response && octets_i < response_needs) fault_o = FaultShort;
    else if (is_response && response.status > 8'd2) fault_o = FaultStatus;
    else if (octets_i < needs) fault_o = FaultShort;
    else if (has_data && response.status != '0 && data != '0) fault_o = FaultDataOfFailure;
    else if (octets_i != must_be) fault_o = FaultLength;
  end

  always_comb begin
    packet_o         = '0;
    packet_o.to      = frame_i[47:0];
    packet_o.from    = from;
    packet_o.command = command;
    if (is_negative) begin
      packet_o.nak  = nak;
      packet_o.sack = sack;
    end
    if (is_response) begin
      packet_o.sequence_number = response.sequence_number;
      packet_o.id              = response.id;
      packet_o.status          = response.status[1:0];
      packet_o.acked_read      = command == CommandSackNakAck && has_data;
    end else if (command == CommandCongestion) begin
      packet_o.number  = body[31:0];
      packet_o.entries = body[47:32];
    end else if (!is_negative) begin
      packet_o.sequence_number = body[31:0];
      packet_o.id              = body[39:32];
      packet_o.line            = body[79:40];
    end
    if (command == CommandMaskedWriteRequest) packet_o.mask = body[80+:64];
    if (has_data || command == CommandWriteRequest || command == CommandMaskedWriteRequest) begin
      packet_o.data = data;
    end
  end

endmodule
