#include "threads/record/cpu_sampler.hpp"

#include <asm/perf_regs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace lotus::tool {
namespace {

namespace layout = lotus::detail;

/// The size of each ring buffer of the kernel, which holds 15 samples. It is not larger, because a
/// user without privileges may lock only about 128 pages per processor, and the program may need
/// some of these to sample itself.
constexpr std::size_t ring_pages = 64;

/// A register that samples contain, with its number in the kernel and in DWARF (the format of
/// unwind tables).
struct sampled_register {
  unsigned in_kernel;
  unsigned in_dwarf;
};
#if defined(__x86_64__)
constexpr unsigned program_counter = PERF_REG_X86_IP;
constexpr unsigned stack_pointer = PERF_REG_X86_SP;
constexpr std::array<sampled_register, 16> registers{{{PERF_REG_X86_AX, 0},
                                                      {PERF_REG_X86_BX, 3},
                                                      {PERF_REG_X86_CX, 2},
                                                      {PERF_REG_X86_DX, 1},
                                                      {PERF_REG_X86_SI, 4},
                                                      {PERF_REG_X86_DI, 5},
                                                      {PERF_REG_X86_BP, 6},
                                                      {PERF_REG_X86_SP, 7},
                                                      {PERF_REG_X86_R8, 8},
                                                      {PERF_REG_X86_R9, 9},
                                                      {PERF_REG_X86_R10, 10},
                                                      {PERF_REG_X86_R11, 11},
                                                      {PERF_REG_X86_R12, 12},
                                                      {PERF_REG_X86_R13, 13},
                                                      {PERF_REG_X86_R14, 14},
                                                      {PERF_REG_X86_R15, 15}}};
#elif defined(__aarch64__)
constexpr unsigned program_counter = PERF_REG_ARM64_PC;
constexpr unsigned stack_pointer = PERF_REG_ARM64_SP;
constexpr std::array<sampled_register, 32> registers = [] {
  std::array<sampled_register, 32> all{};
  // The kernel and DWARF use the same numbers.
  for (unsigned i = 0; i < all.size(); ++i) all[i] = {i, i};
  return all;
}();
#else
  #error "define the registers of this architecture"
#endif

constexpr std::uint64_t register_mask = [] {
  std::uint64_t mask = std::uint64_t{1} << program_counter;
  for (const sampled_register& r : registers) mask |= std::uint64_t{1} << r.in_kernel;
  return mask;
}();

perf_event_attr attributes(std::uint64_t interval_ns) noexcept {
  perf_event_attr attr = layout::sampling_event(interval_ns);
  attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER |
                     PERF_SAMPLE_STACK_USER;
  attr.sample_regs_user = register_mask;
  attr.sample_stack_user = stack_copy::max_bytes;
  attr.sample_id_all = 0;
  attr.exclude_kernel = 0;
  attr.enable_on_exec = 1;
  attr.wakeup_watermark = static_cast<std::uint32_t>(ring_pages * 1024);
  return attr;
}

/// Reads the fields of a record of the kernel one after another.
class record_parts {
 public:
  explicit record_parts(std::string_view record) : rest_(record) {}

  template <class Part>
  bool take(Part& part) noexcept {
    if (rest_.size() < sizeof part) return false;
    std::memcpy(&part, rest_.data(), sizeof part);
    rest_.remove_prefix(sizeof part);
    return true;
  }
  std::string_view take_bytes(std::size_t bytes) noexcept {
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view rest_;
};

/// Reads the registers and the stack of a sample. Returns false if the sample does not contain
/// them, as for threads that run 32-bit code.
bool take_stack(record_parts& record, stack_copy& to) {
  std::uint64_t abi = 0;
  if (!record.take(abi) || abi != PERF_SAMPLE_REGS_ABI_64) return false;
  std::array<std::uint64_t, 64> values{};
  for (unsigned i = 0; i < values.size(); ++i) {
    if ((register_mask >> i & 1U) != 0 && !record.take(values[i])) return false;
  }
  to.pc = values[program_counter];
  to.sp = values[stack_pointer];
  for (const sampled_register& r : registers) to.set_register(r.in_dwarf, values[r.in_kernel]);
  std::uint64_t room = 0;
  std::uint64_t copied = 0;
  if (!record.take(room) || room == 0) return false;
  const std::string_view bytes = record.take_bytes(room);
  if (!record.take(copied) || copied > bytes.size()) return false;
  to.bytes = bytes.substr(0, copied);
  return true;
}

}  // namespace

/// Opens the perf event that samples a thread on one processor. Returns 0 or an errno.
int cpu_sampler::open_on(int cpu, pid_t thread, perf_event_attr& attr) {
  int event = layout::open_event(attr, thread, cpu);
  if ((event == -EACCES || event == -EPERM) && attr.exclude_kernel == 0 && events_.empty()) {
    attr.exclude_kernel = 1;
    event = layout::open_event(attr, thread, cpu);
  }
  if (event < 0) return -event;
  int error = 0;
  const auto [first, is_first] = event_of_cpu_.try_emplace(cpu, event);
  if (is_first) {
    layout::perf_ring ring;
    error = ring.map(event, ring_pages);
    if (error == 0) rings_.push_back(ring);
    if (error != 0) event_of_cpu_.erase(first);
  } else if (::ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, first->second) != 0) {  // NOLINT(*-vararg)
    error = errno;
  }
  if (error == 0) {
    events_.push_back(event);
  } else {
    ::close(event);
  }
  return error;
}

cpu_sampler::cpu_sampler(const std::vector<pid_t>& threads, std::uint64_t interval_ns,
                         sampling_start start) {
  perf_event_attr attr = attributes(interval_ns);
  if (start == sampling_start::now) attr.enable_on_exec = attr.disabled = 0;
  const long processors = ::sysconf(_SC_NPROCESSORS_CONF);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    for (int cpu = 0; cpu < processors; ++cpu) {
      const int error = open_on(cpu, threads[i], attr);
      if (error == ESRCH) break;  // the thread has ended
      if (error == 0) continue;
      error_ = error;  // usually because this processor is offline
      if (error != EMFILE && error != ENFILE) continue;
      left_out_ = threads.size() - i;
      return;
    }
  }
}

cpu_sampler::~cpu_sampler() {
  for (layout::perf_ring& ring : rings_) ring.unmap();
  for (const int event : events_) ::close(event);
}

void cpu_sampler::change_interval(std::uint64_t interval_ns) noexcept {
  for (std::size_t i = 0; i < std::min(changed_at_once, events_.size()); ++i) {
    next_change_ = (next_change_ + 1) % events_.size();
    ::ioctl(events_[next_change_], PERF_EVENT_IOC_PERIOD, &interval_ns);  // NOLINT(*-vararg)
  }
}

void cpu_sampler::drain(const listener& to) {
  for (layout::perf_ring& ring : rings_) {
    bytes_.clear();
    ring.drain([this](const char* data, std::size_t bytes) { bytes_.append(data, bytes); });
    take(bytes_, to);
  }
}

void cpu_sampler::take(std::string_view records, const listener& to) {
  while (records.size() >= sizeof(perf_event_header)) {
    perf_event_header header{};
    std::memcpy(&header, records.data(), sizeof header);
    if (header.size < sizeof header || header.size > records.size()) return;
    record_parts record(records.substr(sizeof header, header.size - sizeof header));
    records.remove_prefix(header.size);
    std::uint32_t pid = 0;
    std::uint32_t other = 0;
    std::uint64_t at_ns = 0;
    if (header.type == PERF_RECORD_SAMPLE) {
      std::uint64_t address = 0;
      stack_copy stack;
      if (!record.take(address) || !record.take(pid) || !record.take(other) ||
          !record.take(at_ns) || !to.sample(pid, other, at_ns)) {
        continue;
      }
      if (!take_stack(record, stack)) stack.pc = address;
      to.stack(std::move(stack));
    } else if (header.type == PERF_RECORD_FORK || header.type == PERF_RECORD_EXIT) {
      std::uint32_t tid = 0;
      std::uint32_t parent_tid = 0;
      if (!record.take(pid) || !record.take(other) || !record.take(tid) ||
          !record.take(parent_tid) || !record.take(at_ns)) {
        continue;
      }
      const bool ends = header.type == PERF_RECORD_EXIT;
      if (!ends && pid != other) to.process(pid, other);
      to.thread(pid, tid, parent_tid, at_ns, ends);
    } else if (header.type == PERF_RECORD_MMAP2) {
      if (record.take(pid)) to.mapping(pid);
    }
  }
}

}  // namespace lotus::tool
