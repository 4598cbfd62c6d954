/// The types that pass between the edge of a link and the host or switch behind it, in blocks.
package em_link_pkg;

  import em_pkg::*;

  /// A 66-bit block; bit 0 of either goes on the line first.
  typedef struct packed {
    logic [PayloadBits-1:0] payload;
    logic [1:0]             header;
  } block_t;

  /// The block of a cycle, if the cycle has one: on a line, or between shims and a frame's coder.
  typedef struct packed {
    logic   valid;
    block_t block;
  } line_slot_t;

  typedef enum logic [1:0] {
    EndSound,    // every check holds
    EndRefused,  // every check holds, but an opcode, a length or a reserved bit is not known
    EndAborted   // its sender gave it up, or the link failed; the block is not of the message
  } ending_e;

  /// From the receiver, at most one block a cycle; nothing can hold it back.
  typedef struct packed {
    logic    valid;
    logic    first;   // begins a message
    logic    last;    // ends it, as `ending` says
    ending_e ending;
    block_t  block;
  } rx_memory_t;

  /// To the transmitter: the head of what waits, taken when `ready` is high in the same cycle.
  typedef struct packed {
    logic   valid;
    logic   framed;  // the unit has several blocks, /MS/ to /MT/, and nothing may come between
    logic   last;    // of the unit
    block_t block;
  } tx_memory_t;

  /// What an end knows of its link; it tells the other so while the link is down.
  typedef struct packed {
    logic       up;       // the link carries messages and frames
    logic       ready;    // it may start anew, and was answered
    logic [7:0] heard;    // the other's failure that it heard of since its own; 0 is none
    logic [7:0] failure;  // its own last failure; 0 is none
  } link_state_t;

  /// One cycle each.
  typedef struct packed {
    logic corrupt;          // bits changed on the way, so the link fails
    logic remote_failed;    // the other end failed, or there is no signal
    logic started;          // the link is up again
    logic message_aborted;  // its sender gave it up
    logic frame_aborted;    // its sender gave it up, or an error cut it
    logic frame_too_long;
    logic frame_corrupt;    // check sequence or preamble
    // Where `corrupt` was found: a control block by itself, a message, a frame.
    logic corrupt_control;
    logic corrupt_message;
    logic corrupt_frame;
  } rx_events_t;

  /// What software lets a link do.
  typedef struct packed {
    logic start;   // a link that is down may start
    logic hold;    // not after corruption, until `start` was low
    logic strict;  // memory before Ethernet
  } link_config_t;

  /// Eight idle characters.
  localparam block_t Idle = '{payload: PayloadBits'(BlockControl), header: SyncControl};
  /// Eight error characters: what was under way is given up.
  localparam logic [6:0] ErrorCharacter = 7'h1e;
  localparam block_t Abort = '{payload: {{8{ErrorCharacter}}, BlockControl}, header: SyncControl};
  /// Ordered sets of clause 46.3.4, as their three octets: a fault of the other end, of this one.
  localparam logic [23:0] RemoteFault = 24'h02_0000;
  localparam logic [23:0] LocalFault = 24'h01_0000;
  /// Longest frame that is taken, with its check sequence: a jumbo frame and a VLAN tag.
  localparam int unsigned FrameBytesMax = 9022;

  function automatic logic has_start(logic [7:0] block_type);
    return block_type inside {BlockStart, BlockControlStart, BlockOrderedStart};
  endfunction

  function automatic logic has_terminate(logic [7:0] block_type);
    return block_type inside {
        BlockTerminate0, BlockTerminate1, BlockTerminate2, BlockTerminate3, BlockTerminate4,
        BlockTerminate5, BlockTerminate6, BlockTerminate7};
  endfunction

  /// Data octets of a block that ends a frame.
  function automatic logic [2:0] terminate_octets(logic [7:0] block_type);
    unique case (block_type)
      BlockTerminate1: return 3'd1;
      BlockTerminate2: return 3'd2;
      BlockTerminate3: return 3'd3;
      BlockTerminate4: return 3'd4;
      BlockTerminate5: return 3'd5;
      BlockTerminate6: return 3'd6;
      BlockTerminate7: return 3'd7;
      default: return 3'd0;
    endcase
  endfunction

  /// Control characters with an error among them: the frame or message under way is given up.
  function automatic logic gives_up(block_t block);
    logic found;
    found = 1'b0;
    for (int unsigned i = 0; i < 8; i++) found |= block.payload[8+7*i+:7] == ErrorCharacter;
    return found && block.header == SyncControl && block.payload[7:0] == BlockControl;
  endfunction

endpackage
