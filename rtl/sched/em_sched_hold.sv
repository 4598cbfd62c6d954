/// Which size classes a free port declines while it waits for its next partner.
///
/// The best candidate of a source that is also the best of its destination pairs them for certain,
/// unless something better arrives. While one of the two is busy, the other takes only what is of
/// the same class or a smaller one.
module em_sched_hold
  import em_sched_pkg::*;
#(
    parameter int unsigned Ports = 2,
    parameter int unsigned KeyWidth = 66,
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic                enable_i,
    /// By source and destination.
    input logic [Ports-1:0]    valid_i[Ports],
    input logic [KeyWidth-1:0] key_i[Ports][Ports],
    input logic [Ports-1:0]    source_ready_i,
    input logic [Ports-1:0]    destination_ready_i,

    /// Candidates that neither end declines, by source and destination.
    output logic [Ports-1:0] accepted_o[Ports]
);

  typedef logic [KeyWidth-1:0] key_t;

  logic [PortWidth-1:0] partner[Ports], rival[Ports];
  logic [Ports-1:0] source_any, destination_any, mutual;
  class_t least[Ports];

  function automatic class_t class_of(key_t key);
    return class_t'(key >> (KeyWidth - BytesBits + ClassShift));
  endfunction

  for (genvar p = 0; p < Ports; p++) begin : gen_heads
    logic [Ports-1:0] to_valid;
    key_t from_key[Ports], to_key[Ports], from_least, to_least;
    for (genvar o = 0; o < Ports; o++) begin : gen_column
      assign to_valid[o] = valid_i[o][p];
      assign to_key[o]   = key_i[o][p];
      assign from_key[o] = key_i[p][o];
    end

    em_min_tree #(
        .Inputs  (Ports),
        .KeyWidth(KeyWidth)
    ) u_source (
        .valid_i(valid_i[p]),
        .key_i  (from_key),
        .valid_o(source_any[p]),
        .index_o(partner[p]),
        .key_o  (from_least)
    );

    em_min_tree #(
        .Inputs  (Ports),
        .KeyWidth(KeyWidth)
    ) u_destination (
        .valid_i(to_valid),
        .key_i  (to_key),
        .valid_o(destination_any[p]),
        .index_o(rival[p]),
        .key_o  (to_least)
    );

    assign least[p]  = class_of(from_least);
    assign mutual[p] = enable_i && source_any[p] && rival[partner[p]] == PortWidth'(p);

    // The destination's least key is the source's, where they are each other's.
    logic unused;
    assign unused = ^{destination_any[p], to_least};
  end

  for (genvar s = 0; s < Ports; s++) begin : gen_sources
    for (genvar d = 0; d < Ports; d++) begin : gen_destinations
      class_t wanted;
      logic source_holds, destination_holds;
      assign wanted = class_of(key_i[s][d]);
      // A port holds while its partner is busy. Its own partner is its own candidate, so it does
      // not decline that.
      assign source_holds = mutual[s] && !destination_ready_i[partner[s]] && wanted > least[s];
      assign destination_holds = mutual[rival[d]] && partner[rival[d]] == PortWidth'(d) &&
                                 !source_ready_i[rival[d]] && wanted > least[rival[d]];
      assign accepted_o[s][d] = valid_i[s][d] && !source_holds && !destination_holds;
    end
  end

endmodule
