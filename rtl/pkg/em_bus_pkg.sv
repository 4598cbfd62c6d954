/// The bus of the registers, behind AXI4-Lite: one access a cycle, answered in that cycle.
package em_bus_pkg;

  localparam int unsigned AddressBits = 21;
  /// Of what a register file looks at: the largest window that one has.
  localparam int unsigned FileBits = 11;

  typedef logic [AddressBits-1:0] address_t;

  typedef struct packed {
    logic        valid;
    logic        write;
    address_t    address;  // in bytes, of a word of 32 bits
    logic [31:0] data;
    logic [31:0] enable;   // bits that are written
  } request_t;

  typedef struct packed {
    logic        done;
    logic        error;  // nothing is at that address
    logic [31:0] data;
  } response_t;

endpackage
