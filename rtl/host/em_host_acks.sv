/// Answers acknowledged writes once memory took their last chunk. It keeps an error of an earlier
/// chunk until then.
module em_host_acks
  import em_pkg::*;
  import em_host_pkg::*;
#(
    parameter int unsigned Nodes = 4
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic  valid_i,
    output logic  ready_o,
    input  node_t peer_i,
    input  id_t   id_i,
    input  logic  acknowledged_i,
    input  logic  first_i,
    input  logic  last_i,
    input  logic  error_i,

    output logic   reply_valid_o,
    input  logic   reply_ready_i,
    output reply_t reply_o,
    /// A posted write was refused; its sender does not wait for an answer.
    output logic   lost_o,
    output logic   quiet_o
);

  localparam int unsigned IndexBits = $clog2(Nodes * RowsMax);

  typedef struct packed {
    node_t peer;
    id_t   id;
    logic  acknowledged;
    logic  first;
    logic  last;
    logic  error;
  } done_t;

  done_t done_q;
  logic busy_q, kept, failed;

  assign ready_o       = !busy_q;
  assign quiet_o       = !busy_q;
  assign failed        = done_q.error || (kept && !done_q.first);
  assign reply_valid_o = busy_q && done_q.acknowledged && done_q.last;
  assign reply_o       = '{
      peer: done_q.peer, id: done_q.id, code: failed ? StatusBadAddress : StatusOk};
  assign lost_o        = busy_q && !done_q.acknowledged && done_q.error;

  em_host_ram #(
      .Width(1),
      .Depth(Nodes * RowsMax)
  ) u_failed (
      .clk_i,
      .write_i        (busy_q && done_q.acknowledged),
      .write_address_i(IndexBits'({done_q.peer, done_q.id[RowBits-1:0]})),
      .write_data_i   (failed),
      .read_i         (ready_o),
      .read_address_i (IndexBits'({peer_i, id_i[RowBits-1:0]})),
      .read_data_o    (kept)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) busy_q <= 1'b0;
    else if (!busy_q) busy_q <= valid_i;
    else if (!reply_valid_o || reply_ready_i) busy_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (!busy_q) begin
      done_q <= '{peer: peer_i, id: id_i, acknowledged: acknowledged_i, first: first_i,
                  last: last_i, error: error_i};
    end
  end

endmodule
