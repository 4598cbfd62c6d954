/// The types and constants that the parts of the switch's Ethernet side share.
package em_l2_pkg;

  localparam int unsigned MacBits = 48;

  /// The first octet on the line is in bits 0..7, and its bit 0 says that it names a group.
  typedef logic [MacBits-1:0] mac_t;

  /// All but the last octet of the groups that no bridge forwards: 01-80-c2-00-00-00 to -0f
  /// (IEEE 802.1Q).
  localparam logic [39:0] ReservedGroup = 40'h00_00c2_8001;

  /// What happens to frames, one bit an event, for counters.
  typedef struct packed {
    logic frame_dropped;   // no room
    logic frame_filtered;  // its station is on its own port, or no bridge forwards it
    logic frame_flooded;   // its station is not known, or it is for several
  } l2_events_t;

endpackage
