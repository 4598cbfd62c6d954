// A network of em_system: lines with a length, memories behind AXI4 with a latency, registers by
// AXI4-Lite, and one clock for all. What nodes ask for comes from who uses it.

#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../../registers/em_registers.h"
#include "../coverage.h"
#include "Vem_system.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_fst_c.h"
#endif

namespace em {

constexpr unsigned kNodes = NODES;
constexpr unsigned kLines = 2 * kNodes;
constexpr uint64_t kIdle = 0x1e;

[[noreturn]] inline void stop(uint64_t cycle, const std::string& what) {
  std::printf("cycle %llu: %s\n", static_cast<unsigned long long>(cycle), what.c_str());
  std::exit(1);
}

inline void print(const char* name, uint64_t value) {
  std::printf("%s=%llu ", name, static_cast<unsigned long long>(value));
}

// xorshift64*: the same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {
    for (int i = 0; i < 8; i++) next();
  }
  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1dull;
  }
  uint64_t below(uint64_t bound) { return (next() >> 11) % bound; }
  bool chance(double share) { return static_cast<double>(next() >> 11) < share * 0x1p53; }

 private:
  uint64_t state_;
};

struct LineWord {
  bool valid = false;
  unsigned header = 1;
  uint64_t data = kIdle;
};

// Blocks under way: the one that left so many cycles ago arrives.
class Line {
 public:
  explicit Line(unsigned cycles) : words_(cycles) {}
  LineWord pass(const LineWord& sent) {
    if (words_.empty()) return sent;
    const LineWord arrived = words_[at_];
    words_[at_] = sent;
    at_ = at_ + 1 == words_.size() ? 0 : at_ + 1;
    return arrived;
  }

 private:
  std::vector<LineWord> words_;
  size_t at_ = 0;
};

// Memory behind AXI4. A burst's first word comes `latency` cycles after its address, the others
// one a cycle; a write is answered so long after its last word. `share` of the cycles are ready.
struct Memory {
  std::vector<uint8_t> bytes;
  unsigned latency = 0;
  double share = 1;

  struct Burst {
    uint64_t due, address;
    unsigned words;
  };
  std::deque<Burst> writes, reads;
  std::deque<uint64_t> answers;
  bool reads_now = false, answers_now = false;

  uint64_t word(uint64_t address) const {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value |= static_cast<uint64_t>(bytes[address + i]) << 8 * i;
    return value;
  }
};

struct Config {
  // Of a way between a node and the switch, in cycles: up and down, by node.
  std::array<unsigned, kNodes> up{}, down{};
  unsigned memory_cycles = 0;
  size_t memory_bytes = 1 << 16;
  unsigned timeout_cycles = 1 << 20;
  bool strict = true;
  uint64_t seed = 1;
  double memory_share = 1;
};

// Where the registers of a port of the switch, and of a link end, are: nodes first, then ports.
uint32_t port_base(unsigned port);
uint32_t link_base(unsigned end);
unsigned link_slave(unsigned end);

class World {
 public:
  explicit World(const Config& config);

  Vem_system& dut() { return *dut_; }
  uint64_t cycle() const { return cycle_; }
  Memory& memory(unsigned node) { return memories_[node]; }
  // Bits to flip in the next block that arrives at this end.
  uint64_t flip[kLines] = {};
  // In each cycle: who drives inputs, and who looks at what is there before the edge.
  std::vector<std::function<void()>> drives, looks;

  void step() {
    settle();
    rise();
  }

  uint32_t read(unsigned slave, uint32_t address);
  uint64_t read64(unsigned slave, uint32_t address);
  void write64(unsigned slave, uint32_t address, uint64_t value);
  // Node, switch and links as software starts them; waits until all ports are in service.
  void start();
  void start_link(unsigned end, bool start, bool hold);
  // Writes waves from here on, to the file that the environment names.
  void trace();
  void idle(unsigned cycles);

 private:
  void drive_lines();
  void drive_memory(unsigned node);
  void hear_memory(unsigned node);
  void settle();
  void rise();

  Config config_;
  std::unique_ptr<Vem_system> dut_;
  Coverage coverage_;
#if VM_TRACE
  std::unique_ptr<VerilatedFstC> waves_;
#endif
  uint64_t cycle_ = 0;
  std::vector<Line> lines_;
  std::vector<Memory> memories_;
  Random random_;
};

}  // namespace em
