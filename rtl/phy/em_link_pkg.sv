/// What passes between the edge of a link and the host or switch behind it, in blocks.
package em_link_pkg;

  import em_pkg::PayloadBits;

  /// A 66-bit block; bit 0 of either goes on the line first.
  typedef struct packed {
    logic [PayloadBits-1:0] payload;
    logic [1:0]             header;
  } block_t;

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

endpackage
