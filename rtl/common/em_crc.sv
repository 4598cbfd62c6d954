/// A reflected CRC over up to `Octets` octets at once: bit 0 of data and of register goes on the
/// line first. Combinational.
///
/// The octets are moved to the upper end, so that one tree of XORs serves every count of them, and
/// a constant count costs nothing more than the tree. With a count of zero the tree is idle:
/// computed in each cycle it takes a fifth of a simulation, and power in hardware.
module em_crc #(
    parameter int unsigned Width = 8,
    /// As catalogues write it: the highest power in the highest bit.
    parameter logic [Width-1:0] Poly = 8'h07,
    parameter int unsigned Octets = 8,
    localparam int unsigned CountWidth = $clog2(Octets + 1)
) (
    /// The register before these octets.
    input  logic [Width-1:0]      crc_i,
    input  logic [8*Octets-1:0]   data_i,
    /// How many octets of `data_i` count, from the lowest on.
    input  logic [CountWidth-1:0] octets_i,
    output logic [Width-1:0]      crc_o
);

  localparam int unsigned Bits = 8 * Octets;
  /// Bits of the data or of the register, whichever is longer.
  localparam int unsigned Both = (Bits > Width) ? Bits : Width;
  typedef logic [Width-1:0][Bits-1:0] parities_t;

  /// Which bits of the data make up each bit of the remainder.
  function automatic parities_t parities();
    logic [Width-1:0] poly, remainder;
    poly      = {<<{Poly}};
    remainder = poly;
    for (int i = int'(Bits) - 1; i >= 0; i--) begin
      for (int unsigned bit_of = 0; bit_of < Width; bit_of++) begin
        parities[bit_of][i] = remainder[bit_of];
      end
      remainder = (remainder >> 1) ^ (remainder[0] ? poly : '0);
    end
  endfunction

  localparam parities_t Parities = parities();

  logic [$clog2(Bits+1)-1:0] bits;
  logic [Both-1:0] aligned;
  logic [Width-1:0] rest;

  assign bits    = {octets_i, 3'b000};
  assign aligned = (Both'(data_i) ^ Both'(crc_i)) << ($bits(bits)'(Bits) - bits);
  // Fewer bits than the register has: what they do not reach moves down.
  assign rest    = crc_i >> bits;

  always_comb begin
    crc_o = rest;
    if (octets_i != '0) begin
      for (int unsigned i = 0; i < Width; i++) begin
        crc_o[i] = rest[i] ^ (^(aligned[Bits-1:0] & Parities[i]));
      end
    end
  end

endmodule
