// Replays the sending half of a trace on the Verilated em_phy_tx: whether memory goes shows in the
// same cycle, that the encoder is asked in the next one, the block on the line two cycles later.

#include "../coverage.h"
#include "../em_phy_rx/link_trace.h"

#include "Vem_phy_tx.h"
#include "verilated.h"

namespace {

using link_trace::Block;
using link_trace::fail;
using link_trace::Row;

struct Totals {
  uint64_t taken = 0, frame_blocks = 0, held = 0, down = 0;
};

class Bench {
 public:
  explicit Bench(bool strict) {
    dut_.clk_i = 0;
    dut_.rst_ni = 0;
    dut_.strict_i = strict;
    idle();
    for (int half = 0; half < 6; half++) {
      dut_.eval();
      dut_.clk_i = !dut_.clk_i;
    }
    dut_.rst_ni = 1;
  }

  // One cycle; without a row there is no slot in it.
  void cycle(uint64_t slot, const Row* row) {
    dut_.clk_i = 0;
    if (row != nullptr) drive(*row);
    dut_.slot_i = row != nullptr;
    dut_.eval();
    if (dut_.encoder_overrun_o || dut_.memory_dry_o) fail(slot, "lost blocks");
    if (dut_.memory_ready_o != (row != nullptr && (row->out & 1) != 0)) fail(slot, "memory taken");
    if (dut_.encoder_ready_o != asked_) fail(slot, "encoder asked");
    check_line(slot);
    second_valid_ = first_valid_;
    second_ = first_;
    first_valid_ = row != nullptr;
    if (row != nullptr) {
      first_ = row->sent;
      asked_ = (row->out >> 1 & 1) != 0;
      totals_.taken += row->out & 1;
      totals_.frame_blocks += row->answers && row->from_encoder != link_trace::kIdle;
      totals_.held += !asked_;
      totals_.down += !row->up();
    }
    dut_.clk_i = 1;
    dut_.eval();
  }

  const Totals& totals() const { return totals_; }

 private:
  void idle() {
    const Row row;
    drive(row);
    dut_.slot_i = 0;
  }

  void drive(const Row& row) {
    const uint32_t heard = row.state >> 8 & 0xff, failure = row.state >> 16 & 0xff;
    dut_.state_i = (row.state & 1) << 17 | (row.state & 2) << 15 | heard << 8 | failure;
    link_trace::put(dut_.encoded_i, row.from_encoder, row.answers != 0);
    const unsigned valid = row.offer & 1, framed = row.offer >> 1 & 1, last = row.offer >> 2 & 1;
    link_trace::put(dut_.memory_i, row.offered, valid << 2 | framed << 1 | last);
  }

  void check_line(uint64_t slot) {
    if ((dut_.line_o[2] >> 2 != 0) != second_valid_) fail(slot, "a block on the line, or none");
    if (second_valid_ && link_trace::get(dut_.line_o) != second_) fail(slot, "another block on the line");
  }

  Vem_phy_tx dut_;
  em::Coverage coverage_;
  // What is behind the multiplexer, and behind the scrambler.
  Block first_, second_;
  bool first_valid_ = false, second_valid_ = false, asked_ = false;
  Totals totals_;
};

}  // namespace

// Arguments: of 100 cycles, how many carry a slot; 1 for a strict arbiter.
int main(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  link_trace::Reader reader;
  link_trace::Gaps gaps(argc > 1 ? argv[1] : "100");
  Bench bench(argc > 2 && argv[2][0] == '1');
  for (Row row; reader.next(&row);) {
    while (!gaps.slot()) bench.cycle(reader.slots, nullptr);
    bench.cycle(reader.slots, &row);
  }
  for (int cycle = 0; cycle < 4; cycle++) bench.cycle(reader.slots, nullptr);
  const Totals& totals = bench.totals();
  std::printf("slots=%llu taken=%llu frame_blocks=%llu held=%llu down=%llu\n",
              static_cast<unsigned long long>(reader.slots),
              static_cast<unsigned long long>(totals.taken),
              static_cast<unsigned long long>(totals.frame_blocks),
              static_cast<unsigned long long>(totals.held),
              static_cast<unsigned long long>(totals.down));
  return 0;
}
