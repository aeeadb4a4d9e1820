#include "threads/unwind/stack_unwinder.hpp"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace lotus::tool {
namespace {

#if defined(__x86_64__)
constexpr unsigned frame_pointer = 6;
constexpr unsigned stack_pointer = 7;
#else
constexpr unsigned frame_pointer = 29;
constexpr unsigned stack_pointer = 31;
#endif
constexpr std::size_t max_frames = 256;

/// Reads a word of the copied stack. Returns false if the copy does not contain the address.
bool word_at(const stack_copy& copy, std::uint64_t address, std::uint64_t& word) noexcept {
  if (address < copy.sp || copy.bytes.size() < sizeof word ||
      address - copy.sp > copy.bytes.size() - sizeof word) {
    return false;
  }
  std::memcpy(&word, copy.bytes.data() + (address - copy.sp), sizeof word);
  return true;
}

}  // namespace

struct stack_unwinder::state {
  Dwfl* dwfl = nullptr;
  bool attached = false;
  const stack_copy* now = nullptr;  ///< the stack that is being unwound
  std::vector<std::uint64_t> found;

  ~state() {
    if (dwfl != nullptr) dwfl_end(dwfl);
  }

  static pid_t next_thread(Dwfl* /*dwfl*/, void* self, void** thread_argument) {
    if (*thread_argument != nullptr) return 0;
    *thread_argument = self;
    return ::getpid();
  }
  static bool get_thread(Dwfl* /*dwfl*/, pid_t /*tid*/, void* self, void** thread_argument) {
    *thread_argument = self;
    return true;
  }
  static bool read_memory(Dwfl* /*dwfl*/, Dwarf_Addr address, Dwarf_Word* result, void* self) {
    std::uint64_t word = 0;
    if (!word_at(*static_cast<state*>(self)->now, address, word)) return false;
    *result = word;
    return true;
  }
  static bool set_registers(Dwfl_Thread* thread, void* self) {
    const stack_copy& copy = *static_cast<state*>(self)->now;
    for (unsigned i = 0; i < stack_copy::max_registers; ++i) {
      if ((copy.known >> i & 1U) == 0) continue;
      const Dwarf_Word value = copy.registers[i];
      if (!dwfl_thread_state_registers(thread, static_cast<int>(i), 1, &value)) return false;
    }
    const Dwarf_Word sp = copy.sp;
    if (!dwfl_thread_state_registers(thread, static_cast<int>(stack_pointer), 1, &sp)) return false;
#if defined(__x86_64__)
    constexpr int return_address = 16;
    const Dwarf_Word pc = copy.pc;
    if (!dwfl_thread_state_registers(thread, return_address, 1, &pc)) return false;
#endif
    dwfl_thread_state_register_pc(thread, copy.pc);
    return true;
  }
  static int on_frame(Dwfl_Frame* frame, void* self) {
    std::vector<std::uint64_t>& found = static_cast<state*>(self)->found;
    Dwarf_Addr pc = 0;
    bool is_activation = false;
    if (!dwfl_frame_pc(frame, &pc, &is_activation) || pc == 0) return DWARF_CB_ABORT;
    found.push_back(is_activation || found.empty() ? pc : pc - 1);
    return found.size() < max_frames ? DWARF_CB_OK : DWARF_CB_ABORT;
  }
};

stack_unwinder::stack_unwinder(std::vector<mapped_code> code)
    : code_(std::move(code)), state_(std::make_unique<state>()) {
  // Only the unwind tables in the files themselves are needed, so the callbacks that could search
  // for other files find none.
  static constexpr Dwfl_Callbacks callbacks{
      [](Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) { return -1; },
      [](Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word,
         char**) { return -1; },
      dwfl_offline_section_address, nullptr};
  state_->dwfl = dwfl_begin(&callbacks);
  if (state_->dwfl == nullptr) return;
  dwfl_report_begin(state_->dwfl);
  std::set<std::string> reported;
  for (const mapped_code& part : code_) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(part.path, error)) continue;
    if (!reported.insert(part.path).second) continue;
    dwfl_report_elf(state_->dwfl, part.path.c_str(), part.path.c_str(), -1, part.file_begin, false);
  }
  dwfl_report_end(state_->dwfl, nullptr, nullptr);
  static constexpr Dwfl_Thread_Callbacks thread_callbacks{
      state::next_thread,   state::get_thread, state::read_memory,
      state::set_registers, nullptr,           nullptr};
  state_->attached =
      dwfl_attach_state(state_->dwfl, nullptr, ::getpid(), &thread_callbacks, state_.get());
}

stack_unwinder::~stack_unwinder() = default;

const mapped_code* stack_unwinder::find(std::uint64_t address) const {
  const auto after = std::upper_bound(
      code_.begin(), code_.end(), address,
      [](std::uint64_t wanted, const mapped_code& part) { return wanted < part.begin; });
  if (after == code_.begin() || address >= (after - 1)->end) return nullptr;
  return &*(after - 1);
}

/// Returns the probable value of the frame pointer of a waiting thread, which the kernel does not
/// report. This is the address of the first words in the stack that look like the saved frame
/// pointer and return address of a caller. The value matters only until the unwinder reaches a
/// function that saved the frame pointer. Returns 0 if there is no such address.
std::uint64_t stack_unwinder::likely_frame_pointer(const stack_copy& copy) const {
  constexpr std::uint64_t word = sizeof(std::uint64_t);
  for (std::uint64_t at = copy.sp; at + 2 * word <= copy.sp + copy.bytes.size(); at += word) {
    std::uint64_t up = 0;
    std::uint64_t back = 0;
    if (!word_at(copy, at, up) || !word_at(copy, at + word, back)) break;
    if (up <= at || up > copy.sp + copy.bytes.size() || up % word != 0 || find(back) == nullptr) {
      continue;
    }
    std::uint64_t next_back = 0;
    if (word_at(copy, up + word, next_back) && find(next_back) == nullptr) continue;
    return at;
  }
  return 0;
}

std::vector<std::uint64_t> stack_unwinder::attempt(const stack_copy& copy, bool& complete) {
  state_->now = &copy;
  state_->found.clear();
  const int ended = dwfl_getthread_frames(state_->dwfl, ::getpid(), state::on_frame, state_.get());
  complete = ended == 0;
  return std::move(state_->found);
}

std::vector<std::uint64_t> stack_unwinder::unwind(const stack_copy& copy) {
  if (!state_->attached) return {copy.pc};
  bool complete = false;
  std::vector<std::uint64_t> frames = attempt(copy, complete);
  if (!complete && (copy.known >> frame_pointer & 1U) == 0) {
    stack_copy with_frame = copy;
    with_frame.set_register(frame_pointer, likely_frame_pointer(copy));
    std::vector<std::uint64_t> longer = attempt(with_frame, complete);
    if (longer.size() > frames.size()) frames = std::move(longer);
  }
  if (frames.empty()) frames.push_back(copy.pc);
  return frames;
}

}  // namespace lotus::tool
