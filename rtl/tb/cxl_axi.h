// AXI4 of em_cxl_axi_pkg for benches: its packed structs as fields, and a memory that answers when
// and in whichever order it likes.

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "cxl_trace.h"

namespace cxl_trace {

constexpr uint64_t kEveryByte = ~uint64_t{0};

// Reads and writes the fields of a packed struct, from its lowest bit on.
template <typename Words>
class Fields {
 public:
  explicit Fields(Words& words) : words_(words) {}

  template <typename Value>
  void field(Value& value, unsigned bits) {
    uint64_t found = 0;
    for (unsigned done = 0; done < bits;) {
      const unsigned shift = (at_ + done) % 32, count = std::min(bits - done, 32 - shift);
      const uint64_t word = words_[(at_ + done) / 32];
      found |= (word >> shift & ((uint64_t{1} << count) - 1)) << done;
      done += count;
    }
    value = static_cast<Value>(found);
    at_ += bits;
  }
  void field(Line& line) {
    for (uint32_t& word : line) field(word, 32);
  }

 private:
  Words& words_;
  unsigned at_ = 0;
};

template <typename Words>
class Filler {
 public:
  explicit Filler(Words& words, unsigned count) : words_(words) {
    for (unsigned i = 0; i < count; i++) words_[i] = 0;
  }

  void field(uint64_t value, unsigned bits) {
    for (unsigned done = 0; done < bits;) {
      const unsigned shift = (at_ + done) % 32, count = std::min(bits - done, 32 - shift);
      words_[(at_ + done) / 32] |=
          static_cast<uint32_t>((value >> done & ((uint64_t{1} << count) - 1)) << shift);
      done += count;
    }
    at_ += bits;
  }
  void field(const Line& line) {
    for (const uint32_t word : line) field(word, 32);
  }

 private:
  Words& words_;
  unsigned at_ = 0;
};

struct AxiRequest {
  static constexpr unsigned kWords = 22;
  bool b_ready = false, w_last = false;
  uint64_t w_strb = 0;
  Line w_data = {};
  bool w_valid = false;
  unsigned aw_len = 0;
  uint64_t aw_line = 0;
  unsigned aw_id = 0;
  bool aw_valid = false, r_ready = false;
  unsigned ar_len = 0;
  uint64_t ar_line = 0;
  unsigned ar_id = 0;
  bool ar_valid = false;

  template <typename Each>
  void each(Each&& fields) {
    fields.field(b_ready, 1);
    fields.field(w_last, 1);
    fields.field(w_strb, 64);
    fields.field(w_data);
    fields.field(w_valid, 1);
    fields.field(aw_len, 6);
    fields.field(aw_line, 40);
    fields.field(aw_id, 8);
    fields.field(aw_valid, 1);
    fields.field(r_ready, 1);
    fields.field(ar_len, 6);
    fields.field(ar_line, 40);
    fields.field(ar_id, 8);
    fields.field(ar_valid, 1);
  }
};

struct AxiResponse {
  static constexpr unsigned kWords = 17;
  bool b_error = false;
  unsigned b_id = 0;
  bool b_valid = false, w_ready = false, aw_ready = false, r_last = false, r_error = false;
  Line r_data = {};
  unsigned r_id = 0;
  bool r_valid = false, ar_ready = false;

  template <typename Each>
  void each(Each&& fields) {
    fields.field(b_error, 1);
    fields.field(b_id, 8);
    fields.field(b_valid, 1);
    fields.field(w_ready, 1);
    fields.field(aw_ready, 1);
    fields.field(r_last, 1);
    fields.field(r_error, 1);
    fields.field(r_data);
    fields.field(r_id, 8);
    fields.field(r_valid, 1);
    fields.field(ar_ready, 1);
  }
};

template <typename Struct, typename Words>
Struct unpacked(const Words& words) {
  Struct found;
  found.each(Fields<const Words>(words));
  return found;
}

template <typename Struct, typename Words>
void pack(Struct from, Words& words) {
  from.each(Filler<Words>(words, Struct::kWords));
}

// A memory of lines. It executes an access at any time between the handshake and the response, so
// that two accesses of one line that are under way together have either order.
class AxiMemory {
 public:
  AxiMemory(uint64_t seed, uint64_t latency_cycles_max)
      : draws_(seed), latency_cycles_max_(latency_cycles_max) {}

  std::map<uint64_t, Line> lines;
  // Its accesses fail, and change nothing.
  uint64_t broken_from = 0, broken_end = 0;
  uint64_t reads = 0, whole_writes = 0, masked_writes = 0, most_waiting = 0;

  // Before a cycle.
  AxiResponse offer(uint64_t now) {
    AxiResponse response;
    response.ar_ready = draws_() % 100 < 70;
    response.aw_ready = draws_() % 100 < 70;
    response.w_ready = draws_() % 100 < 70;
    choose(now, reads_, &read_);
    choose(now, writes_, &write_);
    if (read_ != kNone) {
      Access& read = reads_[static_cast<size_t>(read_)];
      execute(&read);
      response.r_valid = response.r_last = true;
      response.r_id = read.id;
      response.r_error = broken(read.line);
      response.r_data = read.data;
      // What comes with an error is no data.
      if (response.r_error) response.r_data.fill(0xdeadbeef);
    }
    if (write_ != kNone) {
      Access& write = writes_[static_cast<size_t>(write_)];
      execute(&write);
      response.b_valid = true;
      response.b_id = write.id;
      response.b_error = broken(write.line);
    }
    return response;
  }

  // In a cycle: what is taken on either side.
  void take(uint64_t now, const AxiRequest& request, const AxiResponse& response) {
    if (response.r_valid && request.r_ready) end(&reads_, &read_);
    if (response.b_valid && request.b_ready) end(&writes_, &write_);
    if (request.ar_valid && response.ar_ready) {
      reads++;
      begin(now, {false, request.ar_id, request.ar_line, 0, {}, 0, false}, &reads_);
    }
    if (request.aw_valid && response.aw_ready) {
      open_.id = request.aw_id;
      open_.line = request.aw_line;
      has_address_ = true;
    }
    if (request.w_valid && response.w_ready) {
      open_.mask = request.w_strb;
      open_.data = request.w_data;
      has_data_ = true;
    }
    if (has_address_ && has_data_) {
      (open_.mask == kEveryByte ? whole_writes : masked_writes)++;
      open_.writes = true;
      open_.executed = false;
      begin(now, open_, &writes_);
      has_address_ = has_data_ = false;
    }
    most_waiting = std::max<uint64_t>(most_waiting, reads_.size() + writes_.size());
  }

 private:
  struct Access {
    bool writes = false;
    unsigned id = 0;
    uint64_t line = 0, mask = 0;
    Line data = {};
    uint64_t due = 0;
    bool executed = false;
  };
  static constexpr long kNone = -1;

  bool broken(uint64_t line) const { return line >= broken_from && line < broken_end; }

  void begin(uint64_t now, Access access, std::vector<Access>* to) {
    access.due = now + 1 + draws_() % latency_cycles_max_;
    if (draws_() % 2) execute(&access);
    to->push_back(access);
  }

  void execute(Access* access) {
    if (access->executed) return;
    access->executed = true;
    if (broken(access->line)) return;
    Line& line = lines[access->line];
    if (access->writes) {
      store(&line, access->data, access->mask);
    } else {
      access->data = line;
    }
  }

  // What is offered stays until it is taken.
  void choose(uint64_t now, const std::vector<Access>& waiting, long* chosen) {
    if (*chosen != kNone || waiting.empty()) return;
    const long at = static_cast<long>(draws_() % waiting.size());
    if (waiting[static_cast<size_t>(at)].due <= now) *chosen = at;
  }

  static void end(std::vector<Access>* waiting, long* chosen) {
    waiting->erase(waiting->begin() + *chosen);
    *chosen = kNone;
  }

  std::mt19937 draws_;
  uint64_t latency_cycles_max_;
  std::vector<Access> reads_, writes_;
  long read_ = kNone, write_ = kNone;
  Access open_;
  bool has_address_ = false, has_data_ = false;
};

}  // namespace cxl_trace
