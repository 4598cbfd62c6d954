// Random requests of all nodes but the last to the memory of the last, checked byte by byte.

#pragma once

#include <algorithm>

#include "caller.h"

namespace em {

// What a byte may be: one value, or several once a write did not end well.
using Candidates = std::vector<uint8_t>;

class Traffic {
 public:
  static constexpr unsigned kMemoryNode = kNodes - 1;
  static constexpr unsigned kOpenMax = 6;
  static constexpr uint64_t kShared = 0;
  static constexpr uint64_t kRegionBytes = 8192;
  static constexpr unsigned kReachCycles = 100000;

  // With failures, requests that are open at the same time do not touch the same bytes, and what
  // became of a write that did not end well is not known.
  Traffic(World& world, Random& random, bool failures, double share)
      : world_(world), random_(random), failures_(failures) {
    auto& bytes = world.memory(kMemoryNode).bytes;
    std::fill_n(bytes.begin() + kShared, 8, 0);
    for (const uint8_t byte : bytes) model_.push_back({byte});
    for (unsigned n = 0; n < kMemoryNode; n++) {
      callers_.push_back(std::make_unique<Caller>(world, n, share, random.next()));
      callers_[n]->ended = [this, n](Op& op) { ended(n, op); };
      pauses_.push_back(0);
    }
    // The memory node asks for nothing until `reach`.
    callers_.push_back(std::make_unique<Caller>(world, kMemoryNode, 1, 1));
    open_.resize(kMemoryNode);
  }

  uint64_t asked = 0, done = 0, failed = 0;

  // New requests, as long as there are some to come.
  void ask(uint64_t count) {
    for (unsigned n = 0; n < kMemoryNode; n++) {
      if (asked == count || open_[n].size() >= kOpenMax || world_.cycle() < pauses_[n]) continue;
      if (random_.below(4) == 0) submit(n);
    }
  }
  bool quiet() const {
    return std::all_of(open_.begin(), open_.end(), [](const auto& ops) { return ops.empty(); });
  }

  // Each node reads from each other one: how many do. What came before has ended.
  uint64_t reach() {
    for (auto& caller : callers_) caller->ended = nullptr;
    uint64_t reached = 0;
    for (unsigned n = 0; n < kNodes; n++) {
      for (unsigned peer = 0; peer < kNodes; peer++) {
        if (peer == n) continue;
        Op op;
        op.peer = peer;
        callers_[n]->submit(&op);
        for (unsigned i = 0; i < kReachCycles && !op.done(); i++) world_.step();
        if (!op.done()) stop(world_.cycle(), "a read does not end");
        reached += op.good();
      }
    }
    return reached;
  }

  // What memory holds at the end.
  void check_memory() const {
    const auto& bytes = world_.memory(kMemoryNode).bytes;
    for (size_t at = 8; at < bytes.size(); at++) check_byte(at, bytes[at], "memory");
    const uint64_t sum = world_.memory(kMemoryNode).word(kShared);
    if (sum < additions_ || sum > additions_ + additions_lost_) {
      stop(world_.cycle(), "the shared counter has another value");
    }
  }

 private:
  struct Pending {
    std::unique_ptr<Op> op;
    bool shared = false;
    std::vector<Candidates> expected;
  };

  static uint64_t base(unsigned node) { return 64 + node * kRegionBytes; }

  void submit(unsigned n) {
    Pending pending;
    pending.op = std::make_unique<Op>();
    Op& op = *pending.op;
    op.peer = kMemoryNode;
    const uint64_t kind = random_.below(10);
    static constexpr std::array<unsigned, 5> kLengths = {8, 64, 100, 256, 1024};
    op.length = static_cast<unsigned>(1 + random_.below(kLengths[random_.below(5)]));
    op.address = base(n) + random_.below(kRegionBytes - op.length);
    if (kind < 4) {
      op.opcode = kRead;
    } else if (kind < 7) {
      op.opcode = random_.below(2) == 0 ? kPosted : kAcknowledged;
      for (unsigned i = 0; i < op.length; i++) {
        op.data.push_back(static_cast<uint8_t>(random_.next() >> 13));
      }
    } else {
      op.opcode = static_cast<Opcode>(kCompareAndSwap + random_.below(6));
      op.length = 8;
      op.address = base(n) + 8 * random_.below(kRegionBytes / 8);
      op.first = random_.next();
      op.second = random_.next();
      if (kind == 9) {
        pending.shared = true;
        op.opcode = kFetchAndAdd;
        op.address = kShared;
        op.first = 1;
      } else if (op.opcode == kCompareAndSwap && random_.below(2) == 0) {
        op.first = word(op.address);
      }
    }
    if (failures_ && !pending.shared && overlaps(n, op)) return;
    if (!pending.shared) expect(&pending);
    asked++;
    Op* raw = pending.op.get();
    open_[n].push_back(std::move(pending));
    callers_[n]->submit(raw);
  }

  bool overlaps(unsigned n, const Op& op) const {
    return std::any_of(open_[n].begin(), open_[n].end(), [&](const Pending& other) {
      return !other.shared && op.address < other.op->address + other.op->length &&
             other.op->address < op.address + op.length;
    });
  }

  uint64_t word(uint64_t address) const {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
      value |= static_cast<uint64_t>(model_[address + i].front()) << 8 * i;
    }
    return value;
  }

  // What the request must find; without failures it acts in the order in which it was submitted.
  void expect(Pending* pending) {
    const Op& op = *pending->op;
    for (unsigned i = 0; i < op.length; i++) pending->expected.push_back(model_[op.address + i]);
    if (!failures_) apply(op, word(op.address));
  }

  void apply(const Op& op, uint64_t old) {
    if (op.opcode == kRead) return;
    for (unsigned i = 0; i < op.length; i++) {
      const uint64_t value = op.writes() ? op.data[i] : op.modified(old) >> 8 * i;
      model_[op.address + i] = {static_cast<uint8_t>(value)};
    }
  }

  // It may have acted, or not, or in part.
  void doubt(const Op& op) {
    for (unsigned i = 0; i < op.length; i++) {
      Candidates& known = model_[op.address + i];
      if (op.writes()) add(&known, op.data[i]);
      // Of an atomic whose old word is not known, any byte.
      else if (op.modifies()) any(&known);
    }
  }

  static void any(Candidates* known) {
    for (unsigned byte = 0; byte < 256; byte++) add(known, static_cast<uint8_t>(byte));
  }

  static void add(Candidates* known, uint8_t byte) {
    if (std::find(known->begin(), known->end(), byte) == known->end()) known->push_back(byte);
  }

  void check_byte(uint64_t address, uint8_t byte, const char* where) const {
    const Candidates& known = model_[address];
    if (std::find(known.begin(), known.end(), byte) == known.end()) {
      stop(world_.cycle(), std::string(where) + " has another byte at " + std::to_string(address));
    }
  }

  void ended(unsigned n, Op& op) {
    auto at = std::find_if(open_[n].begin(), open_[n].end(),
                           [&](const Pending& pending) { return pending.op.get() == &op; });
    if (at == open_[n].end()) stop(world_.cycle(), "an operation ended twice");
    Pending pending = std::move(*at);
    open_[n].erase(at);
    done++;
    if (!op.good()) {
      failed++;
      if (!failures_) stop(world_.cycle(), "a request failed, code " + std::to_string(op.code));
      if (pending.shared) additions_lost_++;
      else doubt(op);
      // As software would, and so that a link that is down does not use requests up.
      pauses_[n] = world_.cycle() + 100;
      return;
    }
    if (pending.shared) return addition(n, op);
    if (!op.writes()) check_data(op, pending.expected);
    if (failures_) settle(op);
  }

  void settle(const Op& op) {
    if (op.opcode == kPosted) return doubt(op);
    uint64_t old = 0;
    for (size_t i = 0; op.modifies() && i < 8; i++) {
      old |= static_cast<uint64_t>(op.got[i]) << 8 * i;
    }
    apply(op, old);
  }

  void check_data(const Op& op, const std::vector<Candidates>& expected) const {
    if (op.got.size() != op.length) stop(world_.cycle(), "data of another length");
    for (unsigned i = 0; i < op.length; i++) {
      if (std::find(expected[i].begin(), expected[i].end(), op.got[i]) == expected[i].end()) {
        stop(world_.cycle(), "wrong data at " + std::to_string(op.address + i));
      }
    }
  }

  // All nodes add to one word: no node sees a value twice, and each sees the word grow.
  void addition(unsigned n, const Op& op) {
    uint64_t value = 0;
    for (size_t i = 0; i < 8; i++) value |= static_cast<uint64_t>(op.got.at(i)) << 8 * i;
    additions_++;
    seen_.resize(std::max<size_t>(seen_.size(), value + 1));
    if (seen_[value]) stop(world_.cycle(), "two additions of one value");
    seen_[value] = true;
    latest_.resize(kMemoryNode, -1);
    if (static_cast<int64_t>(value) <= latest_[n]) stop(world_.cycle(), "an addition out of order");
    latest_[n] = static_cast<int64_t>(value);
  }

  World& world_;
  Random& random_;
  bool failures_;
  std::vector<Candidates> model_;
  std::vector<std::unique_ptr<Caller>> callers_;
  std::vector<std::deque<Pending>> open_;
  std::vector<uint64_t> pauses_;
  uint64_t additions_ = 0, additions_lost_ = 0;
  std::vector<bool> seen_;
  std::vector<int64_t> latest_;
};

}  // namespace em
