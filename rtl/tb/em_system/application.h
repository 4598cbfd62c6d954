// Operations of an application on the memory of another node, one after the other or several at a
// time; the standard input has one a line: `read|write BYTES ADDRESS`.

#pragma once

#include <algorithm>
#include <cinttypes>
#include <unordered_map>

#include "stages.h"

namespace em {

class Application {
 public:
  Application(World& world, unsigned memory)
      : world_(world), memory_(memory), caller_(world, 0, 1, 1) {
    caller_.ended = [this](Op& op) { ended(op); };
    world.looks.push_back([this] { look(); });
  }

  // Runs all; reads, writes and modifications begin in their order.
  void run(size_t depth) {
    const uint64_t first = world_.cycle();
    while (next() || caller_.under_way() > 0 || !stores_.empty()) {
      while (caller_.under_way() < depth && stores_.size() < depth && next()) begin();
      world_.step();
      if (world_.cycle() - moved_at_ > kStuckCycles) stop(world_.cycle(), "nothing ends any more");
    }
    print("operations", reads_.size() + writes_.size());
    print("cycles", world_.cycle() - first);
    latency("read", &reads_);
    latency("write", &writes_);
    print("read_bytes", read_bytes_);
    print("write_bytes", write_bytes_);
    std::printf("\n");
  }

 private:
  static constexpr uint64_t kStuckCycles = 1 << 22;

  struct Store {
    uint64_t taken_at = 0;
    Op* op = nullptr;
    uint64_t left = 0;
  };

  // Returns true if there is one more, and reads its line.
  bool next() {
    if (has_next_) return true;
    char kind[16];
    unsigned bytes = 0;
    uint64_t address = 0;
    const int fields = std::scanf("%15s %u %" SCNu64, kind, &bytes, &address);
    if (fields != 3) {
      if (fields != EOF) stop(world_.cycle(), "a line is not: read|write BYTES ADDRESS");
      return false;
    }
    const std::string name(kind);
    if (name != "read" && name != "write") {
      stop(world_.cycle(), name + " is neither read nor write");
    }
    const uint64_t size = world_.memory(memory_).bytes.size();
    if (bytes == 0 || bytes > 1024 || address > size - bytes) {
      stop(world_.cycle(), "an operation has 1 to 1024 bytes within the memory");
    }
    writes_next_ = name == "write";
    bytes_next_ = bytes;
    address_next_ = address;
    has_next_ = true;
    return true;
  }

  void begin() {
    auto* op = new Op;
    op->opcode = writes_next_ ? kPosted : kRead;
    op->peer = memory_;
    op->address = address_next_;
    op->length = bytes_next_;
    if (model_.empty()) model_ = world_.memory(memory_).bytes;
    if (writes_next_) {
      for (unsigned i = 0; i < bytes_next_; i++) {
        op->data.push_back(static_cast<uint8_t>(++number_ * 167 >> 3));
        model_[address_next_ + i] = op->data.back();
      }
      stores_.push_back({0, op, bytes_next_});
    } else {
      expected_[op].assign(model_.begin() + static_cast<long>(address_next_),
                           model_.begin() + static_cast<long>(address_next_ + bytes_next_));
    }
    has_next_ = false;
    caller_.submit(op);
  }

  // A write has arrived when memory took its last byte.
  void look() {
    Vem_system& dut = world_.dut();
    if (stores_.empty() || !dut.wvalid_o[memory_] || !dut.wready_i[memory_]) return;
    Store& store = stores_.front();
    store.left -= static_cast<uint64_t>(__builtin_popcount(dut.wstrb_o[memory_]));
    if (store.left != 0) return;
    // The completion of a posted write comes before that or after.
    writes_.push_back(world_.cycle() - (store.op != nullptr ? store.op->taken_at : store.taken_at));
    moved_at_ = world_.cycle();
    stores_.pop_front();
  }

  void ended(Op& op) {
    if (!op.good()) stop(world_.cycle(), "a request failed");
    moved_at_ = world_.cycle();
    if (op.writes()) {
      write_bytes_ += op.length;
      for (Store& store : stores_) {
        if (store.op == &op) {
          store.taken_at = op.taken_at;
          store.op = nullptr;
        }
      }
      delete &op;
      return;
    }
    if (op.got != expected_[&op]) stop(world_.cycle(), "wrong data");
    expected_.erase(&op);
    reads_.push_back(op.done_at - op.taken_at);
    read_bytes_ += op.length;
    delete &op;
  }

  static void latency(const std::string& name, std::vector<uint64_t>* cycles) {
    std::sort(cycles->begin(), cycles->end());
    uint64_t sum = 0;
    for (const uint64_t one : *cycles) sum += one;
    const size_t count = cycles->size();
    print((name + "s").c_str(), count);
    print((name + "_cycles_sum").c_str(), sum);
    print((name + "_cycles_min").c_str(), count ? cycles->front() : 0);
    print((name + "_cycles_p50").c_str(), count ? (*cycles)[count / 2] : 0);
    print((name + "_cycles_p99").c_str(), count ? (*cycles)[count * 99 / 100] : 0);
  }

  World& world_;
  unsigned memory_;
  Caller caller_;
  bool has_next_ = false, writes_next_ = false;
  unsigned bytes_next_ = 0;
  uint64_t address_next_ = 0, number_ = 0, moved_at_ = 0;
  std::vector<uint8_t> model_;
  std::unordered_map<const Op*, std::vector<uint8_t>> expected_;
  std::deque<Store> stores_;
  std::vector<uint64_t> reads_, writes_;
  uint64_t read_bytes_ = 0, write_bytes_ = 0;
};

inline void application(uint64_t depth, uint64_t memory_cycles) {
  Config config = alone();
  config.memory_cycles = static_cast<unsigned>(memory_cycles);
  config.memory_bytes = 1 << 20;
  World world(config);
  Application application(world, kNodes - 1);
  world.start();
  world.trace();
  application.run(depth);
}

}  // namespace em
