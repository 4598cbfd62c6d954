/// The logarithm of em_sched_pkg, found in fours of bits, is that of the highest bit.
module em_sched_log_proof
  import em_sched_pkg::*;
(
    input logic   clk_i,
    input bytes_t value_i
);

  log_t expected;

  always_comb begin
    expected = '0;
    for (int unsigned octave = 0; octave < BytesBits; octave++) begin
      if (value_i[octave]) begin
        expected = {5'(octave), LogFractionBits'(({value_i, 3'b000} >> octave))};
      end
    end
  end

  always_ff @(posedge clk_i) assert (log2_eighths(value_i) == expected);

endmodule
