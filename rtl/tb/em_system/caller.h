// What asks a node for memory: requests out, data and completions in, with random gaps.

#pragma once

#include <functional>

#include "world.h"

namespace em {

enum Opcode : unsigned {
  kRead = 1,
  kPosted = 3,
  kAcknowledged = 4,
  kCompareAndSwap = 8,
  kFetchAndAdd = 9,
  kSwap = 10,
  kAnd = 11,
  kOr = 12,
  kXor = 13,
};

// The same names as em_host_pkg::end_e.
enum End : unsigned { kDone, kTimeout, kIncomplete, kPeerDown, kLinkDown, kBadRequest };

struct Op {
  Opcode opcode = kRead;
  unsigned peer = 0;
  uint64_t address = 0;
  unsigned length = 8;
  std::vector<uint8_t> data;
  uint64_t first = 0, second = 0;

  uint64_t offered_at = 0, taken_at = 0, done_at = 0;
  bool completed = false, whole = false, remote = false;
  unsigned code = 0;
  std::vector<uint8_t> got;

  bool writes() const { return opcode == kPosted || opcode == kAcknowledged; }
  bool modifies() const { return opcode >= kCompareAndSwap; }
  bool good() const { return completed && code == 0; }
  // Nothing more comes: the completion, and all data of what went well.
  bool done() const { return completed && (whole || writes() || code != 0); }

  uint64_t modified(uint64_t old) const {
    switch (opcode) {
      case kCompareAndSwap: return old == first ? second : old;
      case kFetchAndAdd: return old + first;
      case kSwap: return first;
      case kAnd: return old & first;
      case kOr: return old | first;
      default: return old ^ first;
    }
  }
};

class Caller {
 public:
  Caller(World& world, unsigned node, double share, uint64_t seed)
      : world_(world), dut_(world.dut()), node_(node), share_(share), random_(seed) {
    open_.resize(1 << 16);
    world.drives.push_back([this] { drive(); });
    world.looks.push_back([this] { look(); });
  }

  // Called when nothing more of an operation comes.
  std::function<void(Op&)> ended;

  // The operation stays where it is until it has ended.
  void submit(Op* op) {
    op->offered_at = world_.cycle();
    waiting_.push_back(op);
    if (!op->writes()) return;
    for (size_t at = 0; at < op->data.size(); at += 8) {
      uint64_t word = 0;
      for (size_t i = 0; i < 8 && at + i < op->data.size(); i++) {
        word |= static_cast<uint64_t>(op->data[at + i]) << 8 * i;
      }
      words_.push_back({word, at + 8 >= op->data.size()});
    }
  }
  size_t under_way() const { return under_way_ + waiting_.size(); }

 private:
  struct Word {
    uint64_t data;
    bool last;
  };

  bool now() { return share_ >= 1 || random_.chance(share_); }

  void drive() {
    if (!asks_ && !waiting_.empty() && now()) {
      const Op& op = *waiting_.front();
      while (open_[token_] != nullptr) token_ = static_cast<uint16_t>(token_ + 1);
      asks_ = true;
      dut_.request_token_i[node_] = token_;
      dut_.request_opcode_i[node_] = op.opcode;
      dut_.request_peer_i[node_] = op.peer;
      dut_.request_bytes_i[node_] = op.length;
      dut_.request_address_i[node_] = op.address;
      dut_.request_first_i[node_] = op.first;
      dut_.request_second_i[node_] = op.second;
    }
    dut_.request_valid_i[node_] = asks_;
    if (!writes_ && !words_.empty() && now()) {
      writes_ = true;
      dut_.write_data_i[node_] = words_.front().data;
      dut_.write_last_i[node_] = words_.front().last;
    }
    dut_.write_valid_i[node_] = writes_;
    dut_.completion_ready_i[node_] = now();
    dut_.read_ready_i[node_] = now();
  }

  void look() {
    if (asks_ && dut_.request_ready_o[node_]) {
      Op* op = waiting_.front();
      waiting_.pop_front();
      op->taken_at = world_.cycle();
      open_[token_] = op;
      token_ = static_cast<uint16_t>(token_ + 1);
      under_way_++;
      asks_ = false;
    }
    if (writes_ && dut_.write_ready_o[node_]) {
      words_.pop_front();
      writes_ = false;
    }
    if (dut_.read_valid_o[node_] && dut_.read_ready_i[node_]) data();
    if (dut_.completion_valid_o[node_] && dut_.completion_ready_i[node_]) {
      Op* op = open_[dut_.completion_token_o[node_]];
      if (op == nullptr || op->completed) stop(world_.cycle(), "a completion of no request");
      op->completed = true;
      op->remote = dut_.completion_remote_o[node_] != 0;
      op->code = dut_.completion_code_o[node_];
      end(dut_.completion_token_o[node_], op);
    }
  }

  void data() {
    const unsigned token = dut_.read_token_o[node_];
    Op* op = open_[token];
    // Behind the completion of a request that failed a word may come.
    if (op == nullptr) return;
    if (op->whole) stop(world_.cycle(), "data behind the last");
    for (int i = 0; i < 8; i++) {
      if (dut_.read_keep_o[node_] >> i & 1) {
        op->got.push_back(static_cast<uint8_t>(dut_.read_data_o[node_] >> 8 * i));
      }
    }
    op->whole = dut_.read_last_o[node_] != 0;
    end(token, op);
  }

  void end(unsigned token, Op* op) {
    if (!op->done()) return;
    open_[token] = nullptr;
    under_way_--;
    op->done_at = world_.cycle();
    if (ended) ended(*op);
  }

  World& world_;
  Vem_system& dut_;
  unsigned node_;
  double share_;
  Random random_;
  std::deque<Op*> waiting_;
  std::deque<Word> words_;
  std::vector<Op*> open_;
  uint16_t token_ = 0;
  size_t under_way_ = 0;
  bool asks_ = false, writes_ = false;
};

}  // namespace em
