#include "world.h"

#include <cstddef>

namespace em {

namespace {

constexpr unsigned kStartCycles = 10000;
#if VM_TRACE
constexpr uint64_t kPeriodPs = 2560;
constexpr int kTraceLevels = 99;
#endif

}  // namespace

uint32_t port_base(unsigned port) {
  return offsetof(em_switch_top_t, ports) + port * sizeof(em_switch_top__portsx__stride800_t);
}

uint32_t link_base(unsigned end) {
  if (end < kNodes) return offsetof(em_host_top_t, link);
  return port_base(end - kNodes) + offsetof(em_switch_top__portsx__stride800_t, link);
}

unsigned link_slave(unsigned end) { return end < kNodes ? end : kNodes; }

World::World(const Config& config)
    : config_(config), random_(config.seed) {
  Verilated::traceEverOn(std::getenv("WAVES") != nullptr);
  dut_ = std::make_unique<Vem_system>();
  for (unsigned line = 0; line < kLines; line++) {
    lines_.emplace_back(line < kNodes ? config.up[line] : config.down[line - kNodes]);
    dut_->line_signal_i[line] = 1;
  }
  memories_.resize(kNodes);
  for (Memory& memory : memories_) {
    memory.bytes.resize(config.memory_bytes);
    memory.latency = config.memory_cycles;
    memory.share = config.memory_share;
    for (uint8_t& byte : memory.bytes) byte = static_cast<uint8_t>(random_.next() >> 32);
  }
  for (unsigned n = 0; n < kNodes; n++) {
    dut_->xgmii_data_i[n] = 0x0707070707070707;
    dut_->xgmii_control_i[n] = 0xff;
    dut_->completion_ready_i[n] = 1;
    dut_->read_ready_i[n] = 1;
  }
  dut_->rst_ni = 0;
  for (int i = 0; i < 4; i++) step();
  dut_->rst_ni = 1;
}

void World::drive_lines() {
  for (unsigned line = 0; line < kLines; line++) {
    // Its end is a register: what it shows now is of this cycle.
    LineWord word = lines_[line].pass(
        {dut_->line_valid_o[line] != 0, dut_->line_hdr_o[line], dut_->line_data_o[line]});
    // What a node sends arrives at its port, and the other way round.
    const unsigned to = line < kNodes ? line + kNodes : line - kNodes;
    if (word.valid && flip[to] != 0) {
      word.data ^= flip[to];
      flip[to] = 0;
    }
    dut_->line_valid_i[to] = word.valid;
    dut_->line_hdr_i[to] = word.header;
    dut_->line_data_i[to] = word.data;
  }
}

void World::drive_memory(unsigned n) {
  Memory& memory = memories_[n];
  const auto ready = [&] { return memory.share >= 1 || random_.chance(memory.share); };
  dut_->awready_i[n] = ready();
  dut_->wready_i[n] = ready() && !memory.writes.empty();
  dut_->arready_i[n] = ready();
  // What was offered stays until it is taken.
  memory.answers_now = memory.answers_now ||
      (!memory.answers.empty() && memory.answers.front() <= cycle_ && ready());
  memory.reads_now = memory.reads_now ||
      (!memory.reads.empty() && memory.reads.front().due <= cycle_ && ready());
  dut_->bvalid_i[n] = memory.answers_now;
  dut_->rvalid_i[n] = memory.reads_now;
  if (memory.reads_now) dut_->rdata_i[n] = memory.word(memory.reads.front().address);
}

void World::hear_memory(unsigned n) {
  Memory& memory = memories_[n];
  if (dut_->awvalid_o[n] && dut_->awready_i[n]) {
    memory.writes.push_back({0, dut_->awaddr_o[n], dut_->awlen_o[n] + 1u});
  }
  if (dut_->wvalid_o[n] && dut_->wready_i[n]) {
    Memory::Burst& burst = memory.writes.front();
    if (burst.address + 8 > memory.bytes.size()) stop(cycle_, "a write beyond memory");
    for (int i = 0; i < 8; i++) {
      if (dut_->wstrb_o[n] >> i & 1) {
        memory.bytes[burst.address + i] = static_cast<uint8_t>(dut_->wdata_o[n] >> 8 * i);
      }
    }
    burst.address += 8;
    if ((--burst.words == 0) != (dut_->wlast_o[n] != 0)) stop(cycle_, "a burst of another length");
    if (burst.words == 0) {
      memory.writes.pop_front();
      memory.answers.push_back(cycle_ + memory.latency);
    }
  }
  if (dut_->bvalid_i[n] && dut_->bready_o[n]) {
    memory.answers.pop_front();
    memory.answers_now = false;
  }
  if (dut_->arvalid_o[n] && dut_->arready_i[n]) {
    memory.reads.push_back({cycle_ + memory.latency, dut_->araddr_o[n], dut_->arlen_o[n] + 1u});
    if (dut_->araddr_o[n] + 8ull * (dut_->arlen_o[n] + 1u) > memory.bytes.size()) {
      stop(cycle_, "a read beyond memory");
    }
  }
  if (dut_->rvalid_i[n] && dut_->rready_o[n]) {
    Memory::Burst& burst = memory.reads.front();
    burst.address += 8;
    if (--burst.words == 0) memory.reads.pop_front();
    memory.reads_now = false;
  }
}

void World::settle() {
  drive_lines();
  for (unsigned n = 0; n < kNodes; n++) drive_memory(n);
  for (const auto& drive : drives) drive();
  dut_->clk_i = 0;
  dut_->eval();
#if VM_TRACE
  if (waves_) waves_->dump(cycle_ * kPeriodPs + kPeriodPs / 2);
#endif
  for (const auto& look : looks) look();
}

void World::rise() {
  for (unsigned n = 0; n < kNodes; n++) hear_memory(n);
  dut_->clk_i = 1;
  dut_->eval();
  cycle_++;
#if VM_TRACE
  if (waves_) waves_->dump(cycle_ * kPeriodPs);
#endif
}

uint32_t World::read(unsigned slave, uint32_t address) {
  dut_->s_axil_araddr_i[slave] = address;
  dut_->s_axil_arvalid_i[slave] = 1;
  dut_->s_axil_rready_i[slave] = 1;
  for (bool taken = false; !taken;) {
    settle();
    taken = dut_->s_axil_arready_o[slave] != 0;
    rise();
  }
  dut_->s_axil_arvalid_i[slave] = 0;
  for (;;) {
    settle();
    const bool came = dut_->s_axil_rvalid_o[slave] != 0;
    const uint32_t data = dut_->s_axil_rdata_o[slave];
    const unsigned response = dut_->s_axil_rresp_o[slave];
    rise();
    if (came && response != 0) stop(cycle_, "no register at " + std::to_string(address));
    if (came) return data;
  }
}

uint64_t World::read64(unsigned slave, uint32_t address) {
  const uint64_t low = read(slave, address);
  return low | static_cast<uint64_t>(read(slave, address + 4)) << 32;
}

void World::write64(unsigned slave, uint32_t address, uint64_t value) {
  for (unsigned half = 0; half < 2; half++) {
    dut_->s_axil_awaddr_i[slave] = address + 4 * half;
    dut_->s_axil_wdata_i[slave] = static_cast<uint32_t>(value >> 32 * half);
    dut_->s_axil_wstrb_i[slave] = 0xf;
    dut_->s_axil_awvalid_i[slave] = dut_->s_axil_wvalid_i[slave] = 1;
    dut_->s_axil_bready_i[slave] = 1;
    for (bool taken = false; !taken;) {
      settle();
      taken = dut_->s_axil_awready_o[slave] != 0;
      rise();
    }
    dut_->s_axil_awvalid_i[slave] = dut_->s_axil_wvalid_i[slave] = 0;
    for (bool done = false; !done;) {
      settle();
      done = dut_->s_axil_bvalid_o[slave] != 0;
      if (done && dut_->s_axil_bresp_o[slave] != 0) stop(cycle_, "a register refused a write");
      rise();
    }
  }
}

void World::start_link(unsigned end, bool start, bool hold) {
  uint64_t value = start ? EM_HOST_TOP__LINK__CONTROL__START_bm : 0;
  value |= hold ? EM_HOST_TOP__LINK__CONTROL__HOLD_bm : 0;
  value |= config_.strict ? EM_HOST_TOP__LINK__CONTROL__STRICT_bm : 0;
  write64(link_slave(end), link_base(end), value);
}

void World::start() {
  for (unsigned n = 0; n < kNodes; n++) {
    const uint64_t timeout = config_.timeout_cycles;
    write64(n, offsetof(em_host_top_t, node.node),
            n | timeout << EM_HOST_TOP__NODE__NODE__TIMEOUT_CYCLES_bp);
    write64(n, offsetof(em_host_top_t, node.memory), config_.memory_bytes);
  }
  for (unsigned end = 0; end < kLines; end++) start_link(end, true, false);
  for (unsigned i = 0; dut_->port_up_o != (1u << kNodes) - 1; i++) {
    if (i == kStartCycles) stop(cycle_, "a link did not start");
    step();
  }
  // Word that all are joined is on its way to the nodes.
  idle(200);
}

void World::trace() {
  const char* file = std::getenv("WAVES");
  if (file == nullptr) return;
#if VM_TRACE
  waves_ = std::make_unique<VerilatedFstC>();
  dut_->trace(waves_.get(), kTraceLevels);
  waves_->open(file);
#else
  stop(cycle_, "this model has no waves");
#endif
}

void World::idle(unsigned cycles) {
  for (unsigned i = 0; i < cycles; i++) step();
}

}  // namespace em
