// Rows of the traces that the example link_trace of crates/edm writes: what an end of a link did in
// a slot. em_phy_rx and em_phy_tx replay each its half.

#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace link_trace {

struct Block {
  unsigned header = 1;
  uint64_t payload = 0x1e;

  bool operator==(const Block&) const = default;
};

constexpr Block kIdle;

struct Row {
  unsigned input = 1;  // bits: signal, fail, allow
  Block line;
  unsigned memory = 0;  // bits: valid, first, last, and how it ended
  Block of_memory, decoder;
  unsigned events = 0;
  uint32_t state = 1;
  unsigned answers = 0;
  Block from_encoder;
  unsigned offer = 0;  // bits: valid, framed, last
  Block offered;
  unsigned out = 0;  // bits: taken, encoder ready
  Block sent;

  bool up() const { return (state & 1) != 0; }
};

[[noreturn]] inline void fail(uint64_t slot, const char* what) {
  std::printf("slot %llu: %s\n", static_cast<unsigned long long>(slot), what);
  std::exit(1);
}

// Numbers in hexadecimal, from the standard input.
class Reader {
 public:
  bool next(Row* row) {
    if (std::fgets(line_, sizeof line_, stdin) == nullptr) return false;
    at_ = line_;
    row->input = word();
    row->line = block();
    row->memory = word();
    row->of_memory = block();
    row->decoder = block();
    row->events = word();
    row->state = word();
    row->answers = word();
    row->from_encoder = block();
    row->offer = word();
    row->offered = block();
    row->out = word();
    row->sent = block();
    slots++;
    return true;
  }

  uint64_t slots = 0;

 private:
  uint64_t number() {
    char* end = nullptr;
    const uint64_t value = std::strtoull(at_, &end, 16);
    if (end == at_) fail(slots, "not a row");
    at_ = end;
    return value;
  }
  unsigned word() { return static_cast<unsigned>(number()); }
  Block block() {
    const unsigned header = word();
    return {header, number()};
  }

  char line_[512];
  const char* at_ = line_;
};

// Of 100 cycles, how many carry a slot: the program's argument.
class Gaps {
 public:
  explicit Gaps(const char* share) : share_(static_cast<unsigned>(std::atoi(share))) {}

  bool slot() {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return (random_ >> 33) % 100 < share_;
  }

 private:
  unsigned share_;
  uint64_t random_ = 1;
};

// A block in a packed struct: its header in the lowest bits.
template <typename Words>
void put(Words& words, const Block& block, unsigned above) {
  words[0] = static_cast<uint32_t>(block.payload << 2 | block.header);
  words[1] = static_cast<uint32_t>(block.payload >> 30);
  words[2] = static_cast<uint32_t>(block.payload >> 62 | above << 2);
}

template <typename Words>
Block get(const Words& words) {
  const uint64_t low = static_cast<uint64_t>(words[1]) << 32 | words[0];
  return {static_cast<unsigned>(low & 3), low >> 2 | static_cast<uint64_t>(words[2] & 3) << 62};
}

}  // namespace link_trace
