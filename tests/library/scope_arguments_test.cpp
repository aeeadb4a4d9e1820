#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

namespace {

enum class codec : std::uint8_t { jpeg = 3 };

template <class... Arguments>
std::string text_of(const Arguments&... arguments) {
  return std::string(lotus::detail::arguments_text{arguments...}.text());
}

}  // namespace

TEST_CASE("arguments may be texts, numbers, enumerators and sequences of these") {
  CHECK(text_of(std::vector<std::int64_t>{3, 224, 224}) == "[3, 224, 224]");
  const int plain[] = {1, 2};
  CHECK(text_of(plain, "bilinear", std::string("x"), std::string_view("y")) ==
        "[1, 2], bilinear, x, y");
  CHECK(text_of(2.5, 7U, -8, true, codec::jpeg) == "2.5, 7, -8, true, 3");
  CHECK(text_of(std::vector<std::array<int, 2>>{{1, 2}, {3, 4}}) == "[[1, 2], [3, 4]]");
  CHECK(text_of(std::vector<int>{}) == "[]");
}

TEST_CASE("arguments that are too long end in three dots, between two characters") {
  CHECK(text_of(std::string(120, 'x')) == std::string(117, 'x') + "...");
  CHECK(text_of(std::string(117, 'x')) == std::string(117, 'x'));
  CHECK(text_of(std::string(116, 'x') + "\u00e9") == std::string(116, 'x') + "...");
  const std::string many = text_of(std::vector<int>(1000, 7));
  CHECK(many.size() <= 120);
  CHECK(many.substr(many.size() - 3) == "...");
}

TEST_CASE("arguments are stored with the thread and start of their record") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  const std::vector<int> shape{3, 2};
  for (int i = 0; i < 3; ++i) {
    LOTUS_SCOPE_ARGS("Resize", shape, i);
    LOTUS_SCOPE_ARGS(std::string("Late"), i % 2);
  }
  lotus::stop();
  std::map<std::int64_t, std::string> names;
  for (const auto& l : support::read_logs(run.path())) names[l.start_ns] = l.name;
  CHECK(names.size() == 6);
  const auto arguments = support::read_side_log(run.path(), "args");
  REQUIRE(arguments.size() == 6);
  for (const auto& a : arguments) {
    const bool resize = names.at(a.time_ns) == "SResize";
    CHECK((a.name.rfind("S[3%2C 2]%2C ", 0) == 0) == resize);
  }
}

TEST_CASE("arguments of a scope that is not recorded are not read") {
  int looked = 0;
  struct counting {
    int* looked;
    const char* begin() const { return ++*looked, nullptr; }
    static const char* end() { return nullptr; }
  };
  const counting argument{&looked};
  LOTUS_SCOPE_ARGS("Not recorded", argument);
  CHECK(looked == 0);
}
