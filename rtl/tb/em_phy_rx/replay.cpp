// Replays the receiving half of a trace on the Verilated em_phy_rx: what the model gives in a slot
// comes two cycles after its block, and what it counts one cycle after it.

#include "../coverage.h"
#include "link_trace.h"

#include "Vem_phy_rx.h"
#include "verilated.h"

namespace {

using link_trace::fail;
using link_trace::Row;

struct Totals {
  uint64_t blocks = 0, sound = 0, refused = 0, aborted = 0, frames = 0, events[7] = {};
};

class Bench {
 public:
  Bench() {
    dut_.clk_i = 0;
    dut_.rst_ni = 0;
    link_trace::put(dut_.line_i, link_trace::kIdle, 0);
    dut_.signal_i = 1;
    dut_.fail_i = dut_.allow_i = 0;
    for (int half = 0; half < 6; half++) {
      dut_.eval();
      dut_.clk_i = !dut_.clk_i;
    }
    dut_.rst_ni = 1;
  }

  // One cycle; without a row there is no slot in it.
  void cycle(uint64_t slot, const Row* row) {
    dut_.clk_i = 0;
    link_trace::put(dut_.line_i, row != nullptr ? row->line : link_trace::kIdle, row != nullptr);
    if (row != nullptr) dut_.signal_i = row->input & 1;
    dut_.fail_i = first_valid_ && (first_.input >> 1 & 1) != 0;
    dut_.allow_i = first_valid_ && (first_.input >> 2 & 1) != 0;
    dut_.eval();
    check_events(slot);
    check_blocks(slot);
    second_valid_ = first_valid_;
    second_ = first_;
    first_valid_ = row != nullptr;
    if (row != nullptr) first_ = *row;
    dut_.clk_i = 1;
    dut_.eval();
  }

  const Totals& totals() const { return totals_; }

 private:
  void check_events(uint64_t slot) {
    unsigned events = 0;
    for (unsigned i = 0; i < 7; i++) events |= (dut_.events_o >> (9 - i) & 1u) << i;
    // Where it was corrupt is the RTL's own word, and it always has one.
    if (((dut_.events_o >> 9 & 1u) != 0) != ((dut_.events_o & 7u) != 0)) fail(slot, "corrupt nowhere");
    if (events != (first_valid_ ? first_.events : 0)) fail(slot, "other events");
    for (unsigned i = 0; i < 7; i++) totals_.events[i] += events >> i & 1;
  }

  void check_blocks(uint64_t slot) {
    const unsigned flags = dut_.memory_o[2] >> 2;
    const bool memory = (flags >> 4 & 1) != 0;
    if ((dut_.encoded_o[2] >> 2 != 0) != second_valid_) fail(slot, "a slot for the decoder, or none");
    if (memory != (second_valid_ && (second_.memory & 1) != 0)) fail(slot, "a memory block, or none");
    if (!second_valid_) return;
    const unsigned ending = flags & 3;
    const bool last = (flags >> 2 & 1) != 0;
    if (memory) {
      totals_.blocks++;
      if (last != (second_.memory >> 2 & 1)) fail(slot, "the last block, or not");
      if (last && ending != second_.memory >> 3) fail(slot, "another ending");
      const bool whole = !last || ending != 2;
      if (whole && (flags >> 3 & 1) != (second_.memory >> 1 & 1)) fail(slot, "the first, or not");
      if (whole && link_trace::get(dut_.memory_o) != second_.of_memory) fail(slot, "memory block");
      if (last) (ending == 0 ? totals_.sound : ending == 1 ? totals_.refused : totals_.aborted)++;
    }
    const link_trace::Block decoder = link_trace::get(dut_.encoded_o);
    if (decoder != second_.decoder) fail(slot, "another block for the decoder");
    totals_.frames += decoder.header == 1 && (decoder.payload & 0xff) == 0x78;
    const uint32_t state = dut_.state_o;
    const bool up = (state >> 17 & 1) != 0;
    if (up != second_.up()) fail(slot, "up, or down");
    const uint32_t says = (state & 0xff) << 16 | (state & 0xff00) | (state >> 15 & 2);
    if (!up && says != second_.state) fail(slot, "another fault to send");
  }

  Vem_phy_rx dut_;
  em::Coverage coverage_;
  // What is behind the descrambler, and behind the extraction.
  Row first_, second_;
  bool first_valid_ = false, second_valid_ = false;
  Totals totals_;
};

}  // namespace

int main(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  link_trace::Reader reader;
  link_trace::Gaps gaps(argc > 1 ? argv[1] : "100");
  Bench bench;
  for (Row row; reader.next(&row);) {
    while (!gaps.slot()) bench.cycle(reader.slots, nullptr);
    bench.cycle(reader.slots, &row);
  }
  for (int cycle = 0; cycle < 4; cycle++) bench.cycle(reader.slots, nullptr);
  const Totals& totals = bench.totals();
  const auto print = [](const char* name, uint64_t count) {
    std::printf("%s=%llu ", name, static_cast<unsigned long long>(count));
  };
  print("slots", reader.slots);
  print("blocks", totals.blocks);
  print("sound", totals.sound);
  print("refused", totals.refused);
  print("aborted", totals.aborted);
  print("frames", totals.frames);
  const char* names[] = {"corrupt",        "failed",         "started", "messages_aborted",
                         "frames_aborted", "frames_too_long", "frames_corrupt"};
  for (unsigned i = 0; i < 7; i++) print(names[i], totals.events[i]);
  return 0;
}
