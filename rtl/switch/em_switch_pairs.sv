/// Which pairs of ports exchange messages, and the words to their nodes when that changes.
///
/// A pair parts when one of its ports fails. It joins when both are in service, but not before the
/// other node has said that it heard of the parting (rule R7 of docs/internals/edm-faults.md): what
/// it sent until then may still be on its uplink. A port that fails has nothing to answer.
module em_switch_pairs
  import em_pkg::node_t;
  import em_switch_pkg::*;
#(
    parameter int unsigned Ports = 8,
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [Ports-1:0] port_up_i,
    input heard_t heard_i[Ports],

    /// By node and peer: they exchange messages.
    output logic [Ports-1:0] joined_o[Ports],

    /// By node: its peer is joined or gone, a word a time.
    output notice_t          notice_o[Ports],
    input  logic [Ports-1:0] notice_ready_i
);

  // By node and peer: it has not said yet that it heard of their parting.
  logic [Ports-1:0] unheard_q[Ports], unheard_d[Ports];
  logic [Ports-1:0] was_joined_q[Ports], joined[Ports];
  // Words that wait. Of one pair, joined is older than gone: gone must be heard before.
  logic [Ports-1:0] tell_joined_q[Ports], tell_gone_q[Ports];

  for (genvar n = 0; n < Ports; n++) begin : gen_nodes
    logic [Ports-1:0] column, waits, told, told_joined, told_gone;

    for (genvar p = 0; p < Ports; p++) begin : gen_peers
      logic parts, heard;
      assign parts           = was_joined_q[n][p] && !port_up_i[p];
      assign heard           = heard_i[n].valid && PortWidth'(heard_i[n].peer) == PortWidth'(p);
      assign unheard_d[n][p] = port_up_i[n] && (parts || unheard_q[n][p] && !heard);
      assign column[p]       = unheard_d[p][n];
    end
    assign joined[n] = port_up_i[n] ? port_up_i & ~unheard_d[n] & ~column & ~(Ports'(1) << n) : '0;
    assign joined_o[n] = joined[n];

    assign waits = tell_joined_q[n] | tell_gone_q[n];
    em_arb_prio #(
        .Requests(Ports)
    ) u_first (
        .request_i(waits),
        .grant_o  (told)
    );
    assign told_joined = notice_ready_i[n] ? told & tell_joined_q[n] : '0;
    assign told_gone   = notice_ready_i[n] ? told & ~tell_joined_q[n] : '0;

    always_comb begin
      notice_o[n]        = '0;
      notice_o[n].valid  = waits != '0;
      notice_o[n].joined = (told & tell_joined_q[n]) != '0;
      for (int unsigned p = 0; p < Ports; p++) begin
        if (told[p]) notice_o[n].peer |= node_t'(p);
      end
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        unheard_q[n]     <= '0;
        was_joined_q[n]  <= ~(Ports'(1) << n);
        tell_joined_q[n] <= '0;
        tell_gone_q[n]   <= '0;
      end else begin
        unheard_q[n]     <= unheard_d[n];
        was_joined_q[n]  <= joined[n];
        tell_joined_q[n] <= port_up_i[n] ?
            (tell_joined_q[n] & ~told_joined) | (joined[n] & ~was_joined_q[n]) : '0;
        tell_gone_q[n]   <= port_up_i[n] ?
            (tell_gone_q[n] & ~told_gone) | (was_joined_q[n] & ~joined[n]) : '0;
      end
    end
  end

endmodule
