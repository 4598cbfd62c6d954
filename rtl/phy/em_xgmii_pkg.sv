/// Characters of XGMII and their codes in blocks (IEEE 802.3 table 49-1).
package em_xgmii_pkg;

  import em_pkg::*;

  localparam logic [7:0] XgmiiIdle = 8'h07;
  localparam logic [7:0] XgmiiError = 8'hfe;
  localparam logic [7:0] XgmiiStart = 8'hfb;
  localparam logic [7:0] XgmiiTerminate = 8'hfd;
  localparam logic [7:0] XgmiiSequence = 8'h9c;
  localparam logic [7:0] XgmiiSignal = 8'h5c;

  /// By the count of data octets before it.
  localparam logic [7:0] Terminates[8] = '{
      BlockTerminate0, BlockTerminate1, BlockTerminate2, BlockTerminate3,
      BlockTerminate4, BlockTerminate5, BlockTerminate6, BlockTerminate7};

  typedef struct packed {
    logic       known;
    logic [6:0] code;
  } code_t;

  typedef struct packed {
    logic       known;
    logic [7:0] character;
  } character_t;

  /// What a control character is in a block.
  function automatic code_t code_of(logic [7:0] character);
    unique case (character)
      XgmiiIdle:  return '{known: 1'b1, code: 7'h00};
      8'h06:      return '{known: 1'b1, code: 7'h06};
      XgmiiError: return '{known: 1'b1, code: 7'h1e};
      8'h1c:      return '{known: 1'b1, code: 7'h2d};
      8'h3c:      return '{known: 1'b1, code: 7'h33};
      8'h7c:      return '{known: 1'b1, code: 7'h4b};
      8'hbc:      return '{known: 1'b1, code: 7'h55};
      8'hdc:      return '{known: 1'b1, code: 7'h66};
      8'hf7:      return '{known: 1'b1, code: 7'h78};
      default:    return '{known: 1'b0, code: 7'h1e};
    endcase
  endfunction

  /// The control character of a code.
  function automatic character_t character_of(logic [6:0] code);
    unique case (code)
      7'h00:   return '{known: 1'b1, character: XgmiiIdle};
      7'h06:   return '{known: 1'b1, character: 8'h06};
      7'h1e:   return '{known: 1'b1, character: XgmiiError};
      7'h2d:   return '{known: 1'b1, character: 8'h1c};
      7'h33:   return '{known: 1'b1, character: 8'h3c};
      7'h4b:   return '{known: 1'b1, character: 8'h7c};
      7'h55:   return '{known: 1'b1, character: 8'hbc};
      7'h66:   return '{known: 1'b1, character: 8'hdc};
      7'h78:   return '{known: 1'b1, character: 8'hf7};
      default: return '{known: 1'b0, character: XgmiiError};
    endcase
  endfunction

endpackage
