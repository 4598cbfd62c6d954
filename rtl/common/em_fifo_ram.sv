/// A FIFO of one clock like em_fifo_sync, with its words in a RAM with a registered read. A word is
/// visible in the cycle after it was written, and one word a cycle comes and goes.
///
/// A few words in registers hide the RAM's latency. While they have room and the RAM is empty, a
/// new word goes there at once, behind the words that are being read from the RAM.
module em_fifo_ram #(
    parameter int unsigned Width = 66,
    /// Words of the RAM: 2 at least. The registers hold more words.
    parameter int unsigned Depth = 64,
    localparam int unsigned Ahead = 4,
    localparam int unsigned CountWidth = $clog2(Depth + 1)
) (
    input logic clk_i,
    input logic rst_ni,
    /// Forgets all words.
    input logic clear_i,

    input  logic             valid_i,
    output logic             ready_o,
    input  logic [Width-1:0] data_i,

    output logic             valid_o,
    input  logic             ready_i,
    output logic [Width-1:0] data_o,

    /// Words in the RAM: room for `Depth` less these, and perhaps some more.
    output logic [CountWidth-1:0] count_o
);

  localparam int unsigned AheadWidth = $clog2(Ahead + 1);
  localparam int unsigned IndexWidth = $clog2(Depth);
  localparam logic [IndexWidth-1:0] IndexLast = IndexWidth'(Depth - 1);

  logic [IndexWidth-1:0] write_q, read_q;
  logic [CountWidth-1:0] count_q;
  logic [Width-1:0] words_q[Ahead], fetched;
  logic [AheadWidth-1:0] ahead_q, kept;
  logic [$clog2(Ahead)-1:0] first_q, next_q, behind;
  logic fetched_q, direct, store, fetch, pop;

  // With the place of the word that the RAM gives now.
  assign kept    = ahead_q + AheadWidth'(fetched_q);
  assign direct  = valid_i && count_q == '0 && kept != AheadWidth'(Ahead);
  assign ready_o = count_q != CountWidth'(Depth);
  assign store   = valid_i && ready_o && !direct;
  assign fetch   = count_q != '0 && kept != AheadWidth'(Ahead);
  assign behind  = next_q + $clog2(Ahead)'(fetched_q);
  assign valid_o = ahead_q != '0;
  assign data_o  = words_q[first_q];
  assign pop     = valid_o && ready_i;
  assign count_o = count_q;

  em_ram #(
      .Width(Width),
      .Depth(Depth)
  ) u_ram (
      .clk_i,
      .write_i        (store),
      .write_address_i(write_q),
      .write_data_i   (data_i),
      .read_i         (fetch),
      .read_address_i (read_q),
      .read_data_o    (fetched)
  );

  function automatic logic [IndexWidth-1:0] after(logic [IndexWidth-1:0] index);
    return (index == IndexLast) ? '0 : index + 1'b1;
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      {write_q, read_q, count_q, ahead_q, first_q, next_q, fetched_q} <= '0;
    end else if (clear_i) begin
      {write_q, read_q, count_q, ahead_q, first_q, next_q, fetched_q} <= '0;
    end else begin
      if (store) write_q <= after(write_q);
      if (fetch) read_q <= after(read_q);
      count_q   <= count_q + CountWidth'(store) - CountWidth'(fetch);
      fetched_q <= fetch;
      next_q    <= behind + $clog2(Ahead)'(direct);
      ahead_q   <= kept + AheadWidth'(direct) - AheadWidth'(pop);
      if (pop) first_q <= first_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (fetched_q) words_q[next_q] <= fetched;
    if (direct) words_q[behind] <= data_i;
  end

endmodule
