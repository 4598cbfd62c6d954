// Measures the whole way of em_phy_loop: a stream of memory blocks, the wait of memory behind
// frames, Ethernet bit for bit beside memory. The units of memory come from the standard input, a
// line each: 66-bit blocks as in golden/wire/messages.csv. The argument says what to measure.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "../coverage.h"
#include "../em_phy_rx/link_trace.h"
#include "ethernet.h"
#include "Vem_phy_loop.h"
#include "verilated.h"

namespace {

using link_trace::Block;
using link_trace::fail;
using Unit = std::vector<Block>;
using ethernet::frame;
using ethernet::kIdleWord;
using ethernet::Mac;
using ethernet::Octets;
using ethernet::Sink;

constexpr uint64_t kNever = ~0ull;

struct Random {
  uint64_t state = 1;
  uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  }
  uint64_t below(uint64_t bound) { return next() % bound; }
};


class Loop {
 public:
  explicit Loop(bool strict) {
    dut_.clk_i = 0;
    dut_.rst_ni = 0;
    dut_.strict_i = strict;
    drive();
    for (int half = 0; half < 6; half++) {
      dut_.eval();
      dut_.clk_i = !dut_.clk_i;
    }
    dut_.rst_ni = 1;
  }

  Mac mac;
  Sink sink;
  std::deque<const Unit*> singles, framed;
  uint64_t slot = 0, memory_slots = 0, frame_slots = 0, sound = 0;
  // Slots of the first block that went, and that came.
  uint64_t taken_at = kNever, came_at = kNever;

  size_t waits() const { return singles.size() + framed.size() + (open_ != nullptr); }

  // One slot; whether a memory block went, and whose first it was.
  const Unit* cycle() {
    dut_.clk_i = 0;
    drive();
    dut_.eval();
    if (dut_.wrong_o) fail(slot, "an event");
    const Unit* began = nullptr;
    if (dut_.memory_ready_o) {
      const Unit* unit = head();
      if (at_ == 0) began = unit;
      if (taken_at == kNever) taken_at = slot;
      memory_slots++;
      take();
    }
    if (dut_.tx_ready_o) {
      frame_slots += mac.head().data != kIdleWord || mac.head().control != 0xff;
      mac.taken();
    }
    receive();
    dut_.clk_i = 1;
    dut_.eval();
    slot++;
    return began;
  }

 private:
  const Unit* head() const {
    if (open_ != nullptr) return open_;
    return !singles.empty() ? singles.front() : framed.empty() ? nullptr : framed.front();
  }

  void take() {
    if (open_ == nullptr) {
      std::deque<const Unit*>& queue = singles.empty() ? framed : singles;
      open_ = queue.front();
      queue.pop_front();
      sent_.push_back(open_);
    }
    if (++at_ == open_->size()) {
      open_ = nullptr;
      at_ = 0;
    }
  }

  void drive() {
    dut_.tx_data_i = mac.head().data;
    dut_.tx_control_i = mac.head().control;
    const Unit* unit = head();
    const Block idle;
    if (unit == nullptr) {
      link_trace::put(dut_.memory_i, idle, 0);
    } else {
      const bool last = at_ + 1 == unit->size();
      link_trace::put(dut_.memory_i, (*unit)[at_], 4u | (unit->size() > 1) << 1 | last);
    }
  }

  void receive() {
    if (dut_.rx_valid_o) sink.hear(slot, dut_.rx_data_o, dut_.rx_control_o);
    if (sink.errors != 0) fail(slot, "an error between frames");
    const unsigned flags = dut_.memory_o[2] >> 2;
    if ((flags >> 4 & 1) == 0) return;
    if (came_at == kNever) came_at = slot;
    if (sent_.empty()) fail(slot, "a block of no message");
    const Unit& unit = *sent_.front();
    const bool first = came_ == 0, last = ++came_ == unit.size();
    if ((flags >> 3 & 1) != first || (flags >> 2 & 1) != last) fail(slot, "first or last");
    if (link_trace::get(dut_.memory_o) != unit[came_ - 1]) fail(slot, "another memory block");
    if (!last) return;
    if ((flags & 3) != 0) fail(slot, "a message that is not sound");
    sent_.pop_front();
    came_ = 0;
    sound++;
  }

  Vem_phy_loop dut_;
  em::Coverage coverage_;
  const Unit* open_ = nullptr;
  size_t at_ = 0, came_ = 0;
  std::deque<const Unit*> sent_;
};

std::vector<Unit> read_units() {
  std::vector<Unit> units;
  static char line[1 << 16];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    Unit unit;
    for (char* word = std::strtok(line, " \n"); word != nullptr; word = std::strtok(nullptr, " \n")) {
      const std::string text(word);
      const uint64_t high = std::stoull(text.substr(0, text.size() - 16), nullptr, 16);
      const uint64_t low = std::stoull(text.substr(text.size() - 16), nullptr, 16);
      unit.push_back({static_cast<unsigned>(low & 3), high << 62 | low >> 2});
    }
    units.push_back(unit);
  }
  return units;
}

void print(const char* name, uint64_t value) {
  std::printf("%s=%llu ", name, static_cast<unsigned long long>(value));
}

// All messages back to back, and nothing else.
void stream(const std::vector<Unit>& units) {
  Loop loop(false);
  uint64_t sent = 0;
  constexpr uint64_t kSlots = 100000;
  while (loop.slot < kSlots) {
    while (loop.framed.size() < 2) loop.framed.push_back(&units[sent++ % units.size()]);
    loop.cycle();
  }
  print("slots", loop.slot);
  print("used", loop.memory_slots);
  print("sound", loop.sound);
  print("cycles", loop.came_at - loop.taken_at);
}

// The longest wait of a unit that comes a slot after a chunk, over every phase of a frame.
void wait(const std::vector<Unit>& units, bool strict, bool single, unsigned bytes) {
  const Unit& chunk = units.at(0);
  const Unit& unit = single ? units.at(1) : units.at(2);
  Random random;
  const Octets octets = frame(bytes, &random);
  const uint64_t phases = bytes / 8 + 8;
  uint64_t worst = 0;
  for (uint64_t phase = 0; phase < phases; phase++) {
    Loop loop(strict);
    // The MAC's first word is at the transmitter some slots later: begin behind that.
    const uint64_t at = 8 + phase;
    for (bool gone = false; !gone; ) {
      if (loop.mac.waits() < 8) loop.mac.send(octets);
      if (loop.slot == at) loop.framed.push_back(&chunk);
      if (loop.slot == at + 1) (single ? loop.singles : loop.framed).push_back(&unit);
      const uint64_t slot = loop.slot;
      if (loop.cycle() == &unit) {
        worst = slot - at - 1 > worst ? slot - at - 1 : worst;
        gone = true;
      }
    }
  }
  print("blocks", chunk.size());
  print("phases", phases);
  print("worst", worst);
}

// Frames back to back, and memory in a share of the slots.
void beside(const std::vector<Unit>& units, bool strict, unsigned percent, unsigned bytes) {
  Loop loop(strict);
  Random random;
  std::deque<Octets> sent;
  uint64_t checked = 0, blocks = 0;
  constexpr uint64_t kSlots = 100000;
  while (loop.slot < kSlots) {
    while (loop.mac.waits() < 8) {
      sent.push_back(frame(bytes, &random));
      loop.mac.send(sent.back());
    }
    // As many blocks as the share allows, so that short ones and long ones make it up alike.
    while (blocks * 100 < loop.slot * percent) {
      const Unit& unit = units[random.below(units.size())];
      (unit.size() == 1 ? loop.singles : loop.framed).push_back(&unit);
      blocks += unit.size();
    }
    loop.cycle();
    for (; checked < loop.sink.frames.size(); checked++, sent.pop_front()) {
      if (loop.sink.frames[checked] != sent.front()) fail(loop.slot, "another frame");
    }
  }
  print("slots", loop.slot);
  print("memory", loop.memory_slots);
  print("words", loop.frame_slots);
  print("frames", checked);
  print("messages", loop.sound);
  print("waiting", loop.waits());
}

}  // namespace

int main(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  const std::string what = argc > 1 ? argv[1] : "";
  const auto number = [&](int at) { return at < argc ? static_cast<unsigned>(std::atoi(argv[at])) : 0; };
  const std::vector<Unit> units = read_units();
  if (what == "stream") stream(units);
  else if (what == "wait") wait(units, number(2) != 0, number(3) != 0, number(4));
  else beside(units, number(2) != 0, number(3), number(4));
  return 0;
}
