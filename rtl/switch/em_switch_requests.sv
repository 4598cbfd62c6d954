/// Holds the requests of one compute node from their arrival to their release: a ring per memory
/// node, in order, as the scheduler grants them.
module em_switch_requests
  import em_switch_pkg::*;
#(
    parameter int unsigned Ports = 8,
    /// Requests that wait a memory node: X.
    parameter int unsigned NotificationsMax = 3,
    localparam int unsigned PortWidth = $clog2(Ports)
) (
    input logic clk_i,
    input logic rst_ni,
    /// By memory node: an end has failed, and its ring is empty.
    input logic [Ports-1:0] clear_i,

    /// The scheduler has taken it, so that there is room.
    input logic                 insert_i,
    input logic [PortWidth-1:0] insert_peer_i,
    input held_t                insert_held_i,

    /// The oldest of a memory node, in the next cycle.
    input  logic [PortWidth-1:0] look_peer_i,
    output held_t                held_o,
    /// What was looked at is released.
    input  logic                 release_i
);

  localparam int unsigned TurnWidth = (NotificationsMax > 1) ? $clog2(NotificationsMax) : 1;
  localparam logic [TurnWidth-1:0] TurnLast = TurnWidth'(NotificationsMax - 1);

  logic [TurnWidth-1:0] write_q[Ports], read_q[Ports];
  logic [PortWidth-1:0] looked_q;

  function automatic logic [TurnWidth-1:0] after(logic [TurnWidth-1:0] turn);
    return (turn == TurnLast) ? '0 : turn + 1'b1;
  endfunction

  em_ram #(
      .Width($bits(held_t)),
      .Depth(Ports << TurnWidth)
  ) u_ram (
      .clk_i,
      .write_i        (insert_i),
      .write_address_i({insert_peer_i, write_q[insert_peer_i]}),
      .write_data_i   (insert_held_i),
      .read_i         (1'b1),
      .read_address_i ({look_peer_i, read_q[look_peer_i]}),
      .read_data_o    (held_o)
  );

  always_ff @(posedge clk_i) looked_q <= look_peer_i;

  for (genvar p = 0; p < Ports; p++) begin : gen_rings
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        write_q[p] <= '0;
        read_q[p]  <= '0;
      end else if (clear_i[p]) begin
        write_q[p] <= '0;
        read_q[p]  <= '0;
      end else begin
        if (insert_i && insert_peer_i == PortWidth'(p)) write_q[p] <= after(write_q[p]);
        if (release_i && looked_q == PortWidth'(p)) read_q[p] <= after(read_q[p]);
      end
    end
  end

endmodule
