/// Deadlines of the entries of a host. It examines all in turn, one a cycle, so an expired one is
/// found a round later at the latest.
module em_host_timers #(
    parameter int unsigned Entries = 16,
    /// Bits of the counter of cycles; a timeout is below half its range.
    parameter int unsigned TimeBits = 32,
    localparam int unsigned EntryBits = $clog2(Entries)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [TimeBits-2:0]  timeout_cycles_i,
    /// Entries that have a deadline.
    input logic [Entries-1:0]   timed_i,
    /// Begins the time of an entry.
    input logic                 start_i,
    input logic [EntryBits-1:0] start_entry_i,

    /// The deadline of an entry has come, and it has not ended since.
    output logic                 expired_o,
    output logic [EntryBits-1:0] expired_entry_o,
    input  logic                 expired_ready_i
);

  typedef logic [EntryBits-1:0] entry_t;

  logic [TimeBits-1:0] now_q, deadline, late;
  entry_t at_q, looked_q, entry_q;
  logic is_looked_q, expired_q, has_come;

  function automatic entry_t next(entry_t entry);
    return (entry == entry_t'(Entries - 1)) ? '0 : entry + 1'b1;
  endfunction

  em_host_ram #(
      .Width(TimeBits),
      .Depth(Entries)
  ) u_deadlines (
      .clk_i,
      .write_i        (start_i),
      .write_address_i(start_entry_i),
      .write_data_i   (now_q + TimeBits'(timeout_cycles_i)),
      .read_i         (1'b1),
      .read_address_i (at_q),
      .read_data_o    (deadline)
  );

  assign late            = now_q - deadline;
  assign has_come        = is_looked_q && timed_i[looked_q] && !late[TimeBits-1];
  // An entry that ended meanwhile may begin anew under the same number.
  assign expired_o       = expired_q && timed_i[entry_q];
  assign expired_entry_o = entry_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      now_q       <= '0;
      at_q        <= '0;
      looked_q    <= '0;
      is_looked_q <= 1'b0;
      expired_q   <= 1'b0;
      entry_q     <= '0;
    end else begin
      now_q       <= now_q + 1'b1;
      at_q        <= next(at_q);
      looked_q    <= at_q;
      // What starts in the edge that looks is not due yet, whatever was there.
      is_looked_q <= timed_i[at_q];
      if (expired_q) begin
        if (expired_ready_i || !timed_i[entry_q]) expired_q <= 1'b0;
      end else if (has_come) begin
        expired_q <= 1'b1;
        entry_q   <= looked_q;
      end
    end
  end

endmodule
