#include "threads/unwind/stack_unwinder.hpp"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <elfutils/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <ios>
#include <set>
#include <system_error>
#include <utility>

#include "base/files/build_ids.hpp"

namespace lotus::tool {
namespace {

#if defined(__x86_64__)
constexpr unsigned frame_pointer = 6;
constexpr unsigned stack_pointer = 7;
constexpr int return_address = 16;
#else
constexpr unsigned frame_pointer = 29;
constexpr unsigned stack_pointer = 31;
constexpr int return_address = 30;
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
  std::uint64_t last_sp = 0;  ///< stack pointer in the frame found last; 0: unknown

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
    const Dwarf_Word pc = copy.pc;
    if (!dwfl_thread_state_registers(thread, return_address, 1, &pc)) return false;
#endif
    dwfl_thread_state_register_pc(thread, copy.pc);
    return true;
  }
  /// Whether the unwind table shows that the function at this address has no caller, as the first
  /// function of a thread.
  bool is_outermost(std::uint64_t address) const {
    Dwarf_Addr bias = 0;
    Dwfl_Module* const module = dwfl_addrmodule(dwfl, address);
    Dwarf_CFI* const table = module == nullptr ? nullptr : dwfl_module_eh_cfi(module, &bias);
    Dwarf_Frame* read = nullptr;
    if (table == nullptr || dwarf_cfi_addrframe(table, address - bias, &read) != 0) return false;
    const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> frame(read, std::free);
    std::array<Dwarf_Op, 3> space{};
    Dwarf_Op* how = nullptr;
    std::size_t count = 0;
    return dwarf_frame_register(frame.get(), return_address, space.data(), &how, &count) == 0 &&
           count == 0 && how == space.data();
  }

  /// Returns the first address of the function that contains `address`; 0 if it is unknown.
  std::uint64_t start_of_function(std::uint64_t address) const {
    Dwfl_Module* const module = dwfl_addrmodule(dwfl, address);
    GElf_Off offset = 0;
    GElf_Sym symbol{};
    if (module == nullptr || dwfl_module_addrinfo(module, address, &offset, &symbol, nullptr,
                                                  nullptr, nullptr) == nullptr) {
      return 0;
    }
    return address - offset;
  }

  static int on_frame(Dwfl_Frame* frame, void* self) {
    std::vector<std::uint64_t>& found = static_cast<state*>(self)->found;
    Dwarf_Addr pc = 0;
    bool is_activation = false;
    if (!dwfl_frame_pc(frame, &pc, &is_activation) || pc == 0) return DWARF_CB_ABORT;
    found.push_back(is_activation || found.empty() ? pc : pc - 1);
#if _ELFUTILS_PREREQ(0, 188)
    Dwarf_Word sp = 0;
    if (dwfl_frame_reg(frame, stack_pointer, &sp) == 0) static_cast<state*>(self)->last_sp = sp;
#endif
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
    if (!is_same_build(part.path, part.build)) continue;
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

/// Decodes the call instruction before the return address `back`. Returns the address of the
/// function that it calls; 0 if there is no call instruction, or if the instruction does not
/// contain the address of the function.
std::uint64_t stack_unwinder::called_before(std::uint64_t back) {
  const mapped_code* const code = find(back);
  if (code == nullptr) return 0;
  const auto [at, is_new] = files_.try_emplace(code->path);
  if (is_new) at->second.open(code->path, std::ios::binary);
#if defined(__x86_64__)
  std::array<char, 5> call{};
#else
  std::array<char, 4> call{};
#endif
  if (back - code->begin < call.size()) return 0;
  at->second.clear();
  at->second.seekg(
      static_cast<std::streamoff>(back - code->begin + code->file_offset - call.size()));
  if (!at->second.read(call.data(), call.size())) return 0;
#if defined(__x86_64__)
  std::int32_t distance = 0;
  std::memcpy(&distance, call.data() + 1, sizeof distance);
  return call[0] == '\xe8' ? back + static_cast<std::uint64_t>(std::int64_t{distance}) : 0;
#else
  std::uint32_t instruction = 0;
  std::memcpy(&instruction, call.data(), sizeof instruction);
  if (instruction >> 26U != 0x25) return 0;  // BL
  const auto distance = static_cast<std::int32_t>(instruction << 6U) >> 4;
  return back - 4 + static_cast<std::uint64_t>(std::int64_t{distance});
#endif
}

/// Guesses the frame pointer in a function of a waiting thread, which the kernel does not report.
/// Returns probable values, the most probable first. Candidates are the words in the stack that
/// point to the saved frame pointer and return address of a caller. Some of these are left from
/// calls that have ended. The most probable candidate has a return address that follows a call of
/// the function.
/// @param address  an address in the function.
/// @param from  the stack pointer in the function; the frame pointer is larger.
std::vector<std::uint64_t> stack_unwinder::likely_frame_pointers(const stack_copy& copy,
                                                                 std::uint64_t address,
                                                                 std::uint64_t from) {
  constexpr std::uint64_t word = sizeof(std::uint64_t);
  constexpr std::size_t max_candidates = 64;
  constexpr std::size_t max_tries = 8;
  const std::uint64_t function = state_->start_of_function(address);
  std::vector<std::pair<int, std::uint64_t>> found;
  for (std::uint64_t at = from; at + 2 * word <= copy.sp + copy.bytes.size(); at += word) {
    std::uint64_t up = 0;
    std::uint64_t back = 0;
    if (!word_at(copy, at, up) || !word_at(copy, at + word, back)) break;
    if (up <= at || up > copy.sp + copy.bytes.size() || up % word != 0 || find(back) == nullptr) {
      continue;
    }
    std::uint64_t next_back = 0;
    if (word_at(copy, up + word, next_back) && find(next_back) == nullptr) continue;
    const std::uint64_t called = called_before(back);
    found.emplace_back(called == 0 ? 1 : called == function ? 0 : 2, at);
    if (found.size() == max_candidates) break;
  }
  std::sort(found.begin(), found.end());
  std::vector<std::uint64_t> likely;
  for (const auto& [rank, at] : found) {
    if (likely.size() < max_tries) likely.push_back(at);
  }
  return likely;
}

std::vector<std::uint64_t> stack_unwinder::attempt(const stack_copy& copy, bool& complete) {
  state_->now = &copy;
  state_->found.clear();
  state_->last_sp = copy.sp;
  const int ended = dwfl_getthread_frames(state_->dwfl, ::getpid(), state::on_frame, state_.get());
  // libdw reports no error if it stops because it lacks a register that it needs to find the next
  // caller. So also check that the last function found is the first function of the thread.
  complete = ended == 0 && !state_->found.empty() && state_->is_outermost(state_->found.back());
  return std::move(state_->found);
}

std::vector<std::uint64_t> stack_unwinder::unwind(const stack_copy& copy) {
  if (!state_->attached) return {copy.pc};
  bool complete = false;
  std::vector<std::uint64_t> frames = attempt(copy, complete);
  if (!complete && (copy.known >> frame_pointer & 1U) == 0) {
    stack_copy with_frame = copy;
    const std::uint64_t address = frames.empty() ? copy.pc : frames.back();
    const std::size_t without = frames.size();
    for (const std::uint64_t candidate :
         likely_frame_pointers(copy, address, std::max(copy.sp, state_->last_sp))) {
      with_frame.set_register(frame_pointer, candidate);
      std::vector<std::uint64_t> longer = attempt(with_frame, complete);
      if (longer.size() <= without && !complete) break;  // the frame pointer is irrelevant
      if (longer.size() > frames.size() || complete) frames = std::move(longer);
      if (complete) break;
    }
  }
  if (frames.empty()) frames.push_back(copy.pc);
  return frames;
}

}  // namespace lotus::tool
