/// Locates stations: a table of addresses by hash, with one place per hash. It learns each frame's
/// sender and looks up its station, a frame a cycle, in turn for the requesting ports.
///
/// Two stations of one hash evict each other, and frames for the evicted one are flooded: more
/// traffic, and no wrong port. A station that was silent for one to two epochs is forgotten.
module em_l2_table
  import em_l2_pkg::*;
#(
    parameter int unsigned Ports = 8,
    /// A power of two.
    parameter int unsigned Entries = 1024,
    /// 150 s at 2.56 ns: a station is forgotten after 150 s to 300 s.
    parameter logic [39:0] EpochCycles = 40'd58_593_750_000,
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [Ports-1:0] ask_i,
    input  mac_t             destination_i[Ports],
    input  mac_t             source_i[Ports],
    /// The question is taken.
    output logic [Ports-1:0] taken_o,
    /// In the next cycle: the answer to what was taken.
    output logic                 known_o,
    output logic [PortWidth-1:0] port_o
);

  localparam int unsigned IndexWidth = $clog2(Entries);
  typedef logic [IndexWidth-1:0] index_t;

  typedef struct packed {
    logic                 valid;
    logic [1:0]           epoch;
    logic [PortWidth-1:0] port;
    mac_t                 mac;
  } entry_t;

  /// All octets, folded.
  function automatic index_t hash(mac_t mac);
    hash = '0;
    for (int unsigned i = 0; i < MacBits; i++) hash[i%IndexWidth] ^= mac[i];
  endfunction

  logic [39:0] time_q;
  logic [1:0] epoch_q;
  logic old, any, asked_q, swept_q, clearing_q, write, expired;
  index_t sweep_q, swept_index_q, write_index;
  entry_t found, written;
  mac_t destination, source, wanted_q;
  logic [PortWidth-1:0] from;

  em_arb_rr #(
      .Requests(Ports)
  ) u_turn (
      .clk_i,
      .rst_ni,
      .request_i(clearing_q ? '0 : ask_i),
      .grant_o  (taken_o),
      .taken_i  (1'b1)
  );

  always_comb begin
    {destination, source, from} = '0;
    for (int unsigned p = 0; p < Ports; p++) begin
      if (taken_o[p]) begin
        destination |= destination_i[p];
        source      |= source_i[p];
        from        |= PortWidth'(p);
      end
    end
  end
  assign any = taken_o != '0;

  // In a cycle without a lookup, the next entry is read, and evicted if it is too old. No lookup
  // can have written it since: a lookup writes in the cycle in which it reads.
  assign old     = 2'(epoch_q - found.epoch) >= 2'd2;
  assign expired = found.valid && old;

  always_comb begin
    write       = any && !source[0];
    write_index = hash(source);
    written     = '{valid: 1'b1, epoch: epoch_q, port: from, mac: source};
    if (clearing_q) begin
      {write, write_index, written} = {1'b1, sweep_q, entry_t'('0)};
    end else if (!any && swept_q && expired) begin
      {write, write_index, written} = {1'b1, swept_index_q, entry_t'('0)};
    end
  end

  em_ram #(
      .Width($bits(entry_t)),
      .Depth(Entries)
  ) u_entries (
      .clk_i,
      .write_i        (write),
      .write_address_i(write_index),
      .write_data_i   (written),
      .read_i         (1'b1),
      .read_address_i (any ? hash(destination) : sweep_q),
      .read_data_o    (found)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {time_q, epoch_q, sweep_q, asked_q, swept_q} <= '0;
      clearing_q <= 1'b1;
    end else begin
      time_q <= (time_q == EpochCycles - 1'b1) ? '0 : time_q + 1'b1;
      if (time_q == EpochCycles - 1'b1) epoch_q <= epoch_q + 1'b1;
      if (!any) sweep_q <= sweep_q + 1'b1;
      if (sweep_q == '1) clearing_q <= 1'b0;
      asked_q <= any;
      swept_q <= !any && !clearing_q;
    end
  end

  always_ff @(posedge clk_i) begin
    wanted_q      <= destination;
    swept_index_q <= sweep_q;
  end

  assign known_o = asked_q && found.valid && !old && found.mac == wanted_q;
  assign port_o  = found.port;

endmodule
