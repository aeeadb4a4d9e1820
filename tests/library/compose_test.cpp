#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

using support::count_named;

namespace image {

template <class T>
struct Scale {
  T by;
  T operator()(T x) const { return x * by; }
  struct Half {};
};
template <bool>
struct Fixed {};
template <class...>
struct Several {};
[[maybe_unused]] struct {
} unnamed;
struct AddOne {
  void operator()(int& x) const { ++x; }
};

}  // namespace image

namespace {

int twice(int x) {
  return 2 * x;
}

/// An object that counts how often it is copied.
struct tracked {
  int copies = 0;
  std::vector<int> payload = std::vector<int>(10);
  tracked() = default;
  tracked(const tracked& o) : copies{o.copies + 1}, payload{o.payload} {}
  tracked(tracked&&) = default;
  tracked& operator=(const tracked&) = delete;
  tracked& operator=(tracked&&) = default;
};

std::vector<support::log_line> recorded(const support::temp_directory& run) {
  lotus::stop();
  return support::read_logs(run.path());
}

}  // namespace

TEST_CASE("compose calls its operations in order, and names them by type unless a name is given") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  auto t = lotus::compose(image::Scale<int>{3}, image::AddOne{}, lotus::operation{"Twice", twice},
                          twice, [](int x) { return std::to_string(x); });
  CHECK(t(2) == "28");
  const auto lines = recorded(run);
  std::vector<std::string> names;
  for (const auto& l : lines) names.push_back(l.name);
  CHECK(names == std::vector<std::string>{"SScale", "SAddOne", "STwice", "Sfunction", "Slambda",
                                          "STransform"});
}

TEST_CASE("type_name returns the short name of a type") {
  using lotus::detail::type_name;
  struct Local {
    void operator()(int) const {}
  };
  CHECK(type_name<image::Scale<int>>() == "Scale");
  CHECK(type_name<image::Scale<int>::Half>() == "Half");
  CHECK(type_name<image::Scale<image::Scale<int>>::Half>() == "Half");
  CHECK(type_name<image::Fixed<(3 > 2)>>() == "Fixed");
  CHECK(type_name<image::Several<int[3], char>>() == "Several");
  CHECK(type_name<Local>() == "Local");
  CHECK(type_name<decltype(&tracked::copies)>() == "function");
  CHECK(type_name<decltype(&twice)>() == "function");
  const auto lambda = [](image::AddOne) {
    struct Inner {};
    return Inner{};
  };
  CHECK(type_name<std::decay_t<decltype(lambda)>>() == "lambda");
  CHECK(type_name<decltype(lambda({}))>() == "Inner");
  CHECK(type_name<image::Several<std::decay_t<decltype(lambda)>>>() == "Several");
  CHECK(type_name<image::Several<decltype(image::unnamed)>>() == "Several");
  CHECK(type_name<decltype(image::unnamed)>() == "unnamed");
}

TEST_CASE("neighboring operations share clock reads, and STransform needs none of its own") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  auto t = lotus::compose(lotus::operation{"a", twice}, lotus::operation{"b", twice},
                          lotus::operation{"c", twice});
  for (int i = 0; i < 100; ++i) t(i);
  const auto lines = recorded(run);
  REQUIRE(lines.size() == 400);
  for (std::size_t i = 0; i < lines.size(); i += 4) {
    CHECK(lines[i].end_ns() == lines[i + 1].start_ns);
    CHECK(lines[i + 1].end_ns() == lines[i + 2].start_ns);
    CHECK(lines[i + 3].name == "STransform");
    CHECK(lines[i + 3].start_ns == lines[i].start_ns);
    CHECK(lines[i + 3].end_ns() == lines[i + 2].end_ns());
  }
}

TEST_CASE("compose moves values and never copies them") {
  auto t = lotus::compose([](tracked v) { return v; }, [](tracked&& v) { return std::move(v); },
                          [](tracked& v) { v.payload[0] = 5; });
  const tracked out = t(tracked{});
  CHECK(out.copies == 0);
  CHECK(out.payload[0] == 5);
  auto unique = lotus::compose([](std::unique_ptr<int> p) { return p; });
  CHECK(*unique(std::make_unique<int>(4)) == 4);
  // If the caller passes an object that it keeps, the object must be copied once and not be
  // modified.
  const tracked kept;
  CHECK(t(kept).copies == 1);
}

TEST_CASE("compose computes without recording, and returns its argument if it is empty") {
  auto t = lotus::compose(twice, twice);
  CHECK(t(1) == 4);
  CHECK(lotus::compose()(7) == 7);
}

TEST_CASE("an operation that throws is recorded up to the exception, and so is STransform") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  auto t = lotus::compose(
      lotus::operation{"Good", twice},
      lotus::operation{"Bad", [](int) -> int { throw std::runtime_error("broken image"); }},
      lotus::operation{"Never", twice});
  CHECK_THROWS_WITH(t(1), "broken image");
  CHECK_THROWS(t(1));
  const auto lines = recorded(run);
  CHECK(lines.size() == 6);
  CHECK(count_named(lines, "SGood") == 2);
  CHECK(count_named(lines, "SBad") == 2);
  CHECK(count_named(lines, "SNever") == 0);
  CHECK(count_named(lines, "STransform") == 2);
}

TEST_CASE("a chain composed at run time records the same as compose") {
  const support::temp_directory run;
  REQUIRE(lotus::start(run.prefix()));
  lotus::chain<int> c;
  CHECK(c(3) == 3);
  c.add("Resize", twice).add("AddOne", image::AddOne{});
  for (const char* name : {"x", "y"}) c.add(name, twice);
  CHECK(c.size() == 4);
  CHECK(c(1) == 12);
  const auto lines = recorded(run);
  REQUIRE(lines.size() == 5);
  CHECK(lines[1].name == "SAddOne");
  for (std::size_t i = 0; i + 2 < lines.size(); ++i)
    CHECK(lines[i].end_ns() == lines[i + 1].start_ns);
  CHECK(lines[4].name == "STransform");
}

TEST_CASE("a composed transform can be copied") {
  auto first = lotus::compose(image::Scale<int>{3});
  auto second = first;
  CHECK(second(2) == 6);
}
