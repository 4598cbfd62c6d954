/// Decides whether a message may be opened towards a destination, and under which id, and computes
/// the destination's state after the core's operation. Combinational.
module em_host_rows
  import em_host_pkg::*;
#(
    parameter int unsigned X = 3
) (
    input  destination_t destination_i,
    input  logic         write_i,
    /// At most X writes are active, and a read waits for all of them: the link and the switch keep
    /// the order from there.
    output logic         may_open_o,
    output message_id_t  id_o,

    input  entry_commands_t does_i,
    // The entry that it is done to, and the one behind that in the queue.
    input  entry_t          entry_i,
    input  entry_t          next_i,
    /// The head of the queue is opened or dropped.
    input  logic            pops_i,
    input  message_id_t     close_id_i,
    /// The peer saw the id. Otherwise it is used again: the peer tells new ids from duplicates by
    /// how far ahead they are, so a row must not run away from it.
    input  logic            close_exposed_i,
    input  logic            is_word_i,
    input  item_kind_e      word_i,
    output destination_t    destination_o
);

  localparam logic [RowsMax-1:0] ReadRows = RowsMax'((1 << X) - 1);

  logic [RowsMax-1:0] free, lowest;
  row_t row;

  assign free = ~destination_i.rows[write_i] & (write_i ? '1 : ReadRows);

  em_arb_prio #(
      .Requests(RowsMax)
  ) u_lowest (
      .request_i(free),
      .grant_o  (lowest)
  );

  always_comb begin
    row = '0;
    for (int unsigned i = 0; i < RowsMax; i++) begin
      if (lowest[i]) row = row_t'(i);
    end
  end

  assign may_open_o = free != '0 && (write_i
                                     ? destination_i.writes_active < (RowBits+1)'(X)
                                     : destination_i.writes_active == '0);

  assign id_o.write      = write_i;
  assign id_o.row        = row;
  assign id_o.generation = destination_i.generations[write_i][row] + 1'b1;

  always_comb begin
    destination_o = destination_i;
    if (does_i.open) begin
      destination_o.rows[write_i][row]        = 1'b1;
      destination_o.generations[write_i][row] = id_o.generation;
      destination_o.writes_active = destination_i.writes_active + (RowBits+1)'(write_i);
    end
    if (does_i.close) begin
      destination_o.rows[close_id_i.write][close_id_i.row] = 1'b0;
      destination_o.generations[close_id_i.write][close_id_i.row] =
          close_id_i.generation - GenerationBits'(!close_exposed_i);
    end
    if (does_i.sent) destination_o.writes_active = destination_i.writes_active - 1'b1;
    if (does_i.enqueue) begin
      destination_o.queued = 1'b1;
      destination_o.tail   = entry_i;
      if (!destination_i.queued) destination_o.head = entry_i;
    end
    if (pops_i) begin
      destination_o.head   = next_i;
      destination_o.queued = destination_i.head != destination_i.tail;
    end
    if (is_word_i) begin
      destination_o.down = word_i != ItemPeerUp;
      if (destination_o.down) begin
        {destination_o.rows, destination_o.writes_active, destination_o.queued} = '0;
      end
    end
  end

endmodule
