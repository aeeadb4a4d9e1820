// Tests modules whose symbols or debug info are made to use up the time, memory or stack of their
// reader. They are assembled here, so the test needs the system's compiler.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/diagnostics.hpp"
#include "catch.hpp"
#include "sampling/read/symbols.hpp"
#include "support.hpp"

namespace {

/// Assembles a library with the function `symbol` and this debug info. Returns its path; "" if that
/// is not possible here.
std::string assembled(const support::temp_directory& in, const std::string& symbol,
                      const std::string& debug_info) {
  const auto source = in.path() / "hostile.s";
  const auto library = in.path() / "hostile.so";
  std::ofstream{source} << ".text\n.globl \"" << symbol << "\"\n.type \"" << symbol
                        << "\", @function\n\"" << symbol
                        << "\":\n.Lb:\n.skip 64, 0x90\n.Le:\n.size \"" << symbol << "\", 64\n"
                        << debug_info;
  const std::string command =
      "cc -shared -nostdlib " + source.string() + " -o " + library.string() + " >/dev/null 2>&1";
  return std::system(command.c_str()) == 0 ? library.string() : "";
}

/// Abbreviations: 1 a unit, 2 a block with code and children, 3 a function that refers to another.
constexpr const char* abbreviations = R"(
.section .debug_abbrev
.uleb128 1; .uleb128 0x11; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 6; .uleb128 0; .uleb128 0
.uleb128 2; .uleb128 0x0b; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 6; .uleb128 0; .uleb128 0
.uleb128 3; .uleb128 0x2e; .byte 0; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 6
.uleb128 0x47; .uleb128 0x13; .uleb128 0; .uleb128 0
.uleb128 4; .uleb128 0x1d; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 6
.uleb128 0x31; .uleb128 0x13; .uleb128 0; .uleb128 0
.byte 0
.section .debug_info
.Lunit: .long .Lend - .Lversion
.Lversion: .short 4; .long 0; .byte 8
.uleb128 1; .quad .Lb; .long 64
)";

std::uint64_t code_offset(const std::string& library) {
  // The function is at the beginning of .text.
  const std::string list = library + ".sections";
  if (std::system(("readelf -SW " + library + " > " + list).c_str()) != 0) return 0;
  std::ifstream lines{list};
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find(" .text ");
    if (at == std::string::npos) continue;
    std::istringstream fields{line.substr(at)};
    std::string name;
    std::string type;
    std::string address;
    std::string offset;
    fields >> name >> type >> address >> offset;
    return std::stoull(offset, nullptr, 16);
  }
  return 0;
}

/// Looks up the function, and returns how many seconds that took.
double seconds_to_read(const std::string& library, std::string& function) {
  const std::uint64_t offset = code_offset(library);
  const auto began = std::chrono::steady_clock::now();
  std::ostringstream said;
  lotus::tool::diagnostic_log diagnostics(said, false);
  lotus::tool::symbol_source symbols(diagnostics);
  function = symbols.at(library, offset + 8, "").function;
  static_cast<void>(symbols.frames_at(library, offset + 8, ""));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

TEST_CASE("a hostile module ends only the process that reads it") {
  const support::temp_directory run;
  std::string symbol = "plain";
  std::string info;
  const std::string attack = GENERATE("itself", "nested", "name", "none");
  if (attack == "itself") {
    info = std::string(abbreviations) +
           ".Lf: .uleb128 4; .quad .Lb; .long 64; .long .Lf - .Lunit\n.byte 0\n.byte 0\n.Lend:\n";
  } else if (attack == "nested") {
    info = std::string(abbreviations) +
           ".rept 300000\n.uleb128 2; .quad .Lb; .long 64\n.endr\n"
           ".uleb128 4; .quad .Lb; .long 64; .long .Lx - .Lunit\n.byte 0\n"
           ".Lx: .uleb128 3; .quad .Lb; .long 64; .long .Lx - .Lunit\n"
           ".skip 300001, 0\n.Lend:\n";
  } else if (attack == "name") {
    // Each argument is a pair of the one before, so that the text doubles with each.
    symbol = "_Z1fSt4pairIiiES_IS0_S0_E";
    constexpr char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (int i = 1; i < 35; ++i) {
      const std::string last = std::string("S") + digits[i] + "_";
      symbol += "S_I" + last + last + "E";
    }
  }
  const std::string library = assembled(run, symbol, info);
  if (library.empty()) return lotus_test::skip("no compiler that assembles for this machine");
  std::string function;
  CAPTURE(attack);
  CHECK(seconds_to_read(library, function) < 250);
  if (attack == "none") CHECK(function == "plain");
}

TEST_CASE("a compressed module that unpacks to gigabytes is not unpacked") {
  const support::temp_directory run;
  const std::string library = assembled(run, "plain", "");
  const std::string packed = (run.path() / "packed.so").string();
  const std::string pack = "{ cat " + library + "; head -c 400M /dev/zero; } | xz -0 > " + packed;
  if (library.empty() || std::system((pack + " 2>/dev/null").c_str()) != 0) {
    return lotus_test::skip("no compiler or no xz");
  }
  std::string function;
  CHECK(seconds_to_read(packed, function) < 250);
  CHECK(function == "[no symbols]");
}
