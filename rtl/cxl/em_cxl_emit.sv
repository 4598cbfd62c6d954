/// Writes a packet as the octets of its frame, padded, without its check sequence. Combinational.
module em_cxl_emit
  import em_cxl_pkg::*;
(
    input  packet_t packet_i,
    output frame_t  frame_o,
    output octets_t octets_o
);

  localparam int unsigned HeaderBits = 8 * 15;

  data_t data;
  octets_t octets;
  frame_t body;
  logic [47:0] request;
  logic [47:0] response;
  logic is_read;

  assign is_read  = packet_i.command == CommandReadResponse || packet_i.acked_read;
  // A failed read is as long as any, and its data is zeros.
  assign data     = (is_read && packet_i.status != '0) ? '0 : packet_i.data;
  assign response = {6'b0, packet_i.status, packet_i.id, packet_i.sequence_number};
  assign request  = {packet_i.line[7:0], packet_i.id, packet_i.sequence_number};

  always_comb begin
    body   = '0;
    octets = octets_t'(25);
    case (packet_i.command)
      CommandReadRequest: body = frame_t'({packet_i.line[LineBits-1:8], request});
      CommandWriteRequest: begin
        body   = frame_t'({data, packet_i.line[LineBits-1:8], request});
        octets = octets_t'(89);
      end
      CommandMaskedWriteRequest: begin
        body   = frame_t'({data, packet_i.mask, packet_i.line[LineBits-1:8], request});
        octets = octets_t'(97);
      end
      CommandReadResponse: begin
        body   = frame_t'({data, response});
        octets = octets_t'(85);
      end
      CommandWriteResponse: body = frame_t'(response);
      CommandSackNak: body = frame_t'({packet_i.sack, packet_i.nak});
      CommandSackNakAck: begin
        if (packet_i.acked_read) begin
          body   = frame_t'({data, response, CommandReadResponse, packet_i.sack, packet_i.nak});
          octets = octets_t'(94);
        end else begin
          body = frame_t'({response, CommandWriteResponse, packet_i.sack, packet_i.nak});
        end
      end
      default: body = frame_t'({packet_i.entries, packet_i.number});
    endcase
  end

  assign frame_o  = (body << HeaderBits)
                    | frame_t'({packet_i.command, EtherType, packet_i.from, packet_i.to});
  assign octets_o = (octets < octets_t'(FrameOctetsMin)) ? octets_t'(FrameOctetsMin) : octets;

endmodule
