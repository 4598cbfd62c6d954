/// em_host_rows, whatever is opened and closed: no row is opened while it is in use, no id follows
/// itself, at most X reads and X notifications are active, and no read is opened while a write is.
module em_host_rows_proof
  import em_host_pkg::*;
#(
    parameter int unsigned X = 3
) (
    input logic        clk_i,
    input logic        write_i,
    input logic        open_i,
    input logic        close_i,
    input logic        sent_i,
    input message_id_t close_id_i,
    input logic        close_exposed_i,
    /// The row that is looked at: any one.
    input logic        class_i,
    input row_t        row_i
);

  destination_t destination_q = '0, destination_d;
  entry_commands_t does;
  message_id_t id;
  logic may_open, opens, closes, sends;
  // What the row is, counted apart from the module.
  logic class_q = 1'b0, chosen_q = 1'b0, used_q = 1'b0;
  row_t row_q = '0;
  logic [RowBits:0] active_q = '0;

  // One at a time, as the core does, and only what is there is closed or sent.
  assign opens  = open_i && may_open;
  assign closes = !open_i && close_i && destination_q.rows[close_id_i.write][close_id_i.row]
      && close_id_i.generation == destination_q.generations[close_id_i.write][close_id_i.row];
  assign sends  = !open_i && sent_i && active_q != '0;

  always_comb begin
    does       = '0;
    does.open  = opens;
    does.close = closes;
    does.sent  = sends;
  end

  em_host_rows #(
      .X(X)
  ) u_dut (
      .destination_i(destination_q),
      .write_i,
      .may_open_o   (may_open),
      .id_o         (id),
      .does_i       (does),
      .entry_i      ('0),
      .next_i       ('0),
      .pops_i       (1'b0),
      .close_id_i,
      .close_exposed_i,
      .is_word_i    (1'b0),
      .word_i       (ItemPeerUp),
      .destination_o(destination_d)
  );

  always_ff @(posedge clk_i) begin
    destination_q <= destination_d;
    active_q      <= active_q + (RowBits+1)'(opens && write_i) - (RowBits+1)'(sends);
    chosen_q      <= 1'b1;
    if (!chosen_q) begin
      class_q <= class_i;
      row_q   <= row_i;
      used_q  <= opens && id.write == class_i && id.row == row_i;
    end else if (opens && id.write == class_q && id.row == row_q) begin
      used_q <= 1'b1;
    end else if (closes && close_id_i.write == class_q && close_id_i.row == row_q) begin
      used_q <= 1'b0;
    end
  end

  always_comb begin
    if (chosen_q && opens && id.write == class_q && id.row == row_q) assert (!used_q);
    if (chosen_q) assert (destination_q.rows[class_q][row_q] == used_q);
    if (opens) begin
      assert (id.write == write_i);
      assert (id.generation != destination_q.generations[id.write][id.row]);
      if (!write_i) assert (active_q == '0 && (RowBits+1)'(id.row) < (RowBits+1)'(X));
    end
    assert (active_q <= (RowBits+1)'(X));
    assert (destination_q.writes_active == active_q);
    assert ($countones(destination_q.rows[0]) <= X);
  end

endmodule
