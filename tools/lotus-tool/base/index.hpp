// Provides index types with a tag. With a different tag for each kind of object, the compiler
// rejects code that uses the index of one kind of object for another.
#ifndef LOTUS_TOOL_BASE_INDEX_HPP
#define LOTUS_TOOL_BASE_INDEX_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>

namespace lotus::tool {

/// An index of one kind of object. `Kind` is a tag: indices with different tags cannot be compared,
/// and no index converts to a number implicitly.
template <class Kind>
class strong_index {
 public:
  constexpr strong_index() noexcept = default;
  template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>
  constexpr explicit strong_index(Integer value) noexcept
      : value_(static_cast<std::uint32_t>(value)) {}

  constexpr std::uint32_t value() const noexcept { return value_; }
  constexpr strong_index& operator++() noexcept {
    ++value_;
    return *this;
  }

  friend constexpr bool operator==(strong_index a, strong_index b) noexcept {
    return a.value_ == b.value_;
  }
  friend constexpr bool operator!=(strong_index a, strong_index b) noexcept { return !(a == b); }
  friend constexpr bool operator<(strong_index a, strong_index b) noexcept {
    return a.value_ < b.value_;
  }

 private:
  std::uint32_t value_ = 0;
};

/// An optional index that takes no more space than an index, because a run may have hundreds of
/// millions of them. The largest 32-bit value represents "empty" and is not available as an index.
/// Unlike an empty std::optional, an empty optional_index is greater than all others, so that
/// objects without an index are sorted last.
template <class Index>
class optional_index {
 public:
  constexpr optional_index() noexcept = default;
  constexpr optional_index(std::nullopt_t) noexcept {}  // NOLINT(google-explicit-constructor)
  constexpr optional_index(Index index) noexcept        // NOLINT(google-explicit-constructor)
      : index_(index) {}

  constexpr bool has_value() const noexcept { return index_ != none; }
  constexpr explicit operator bool() const noexcept { return has_value(); }
  /// Returns the index. Must be called only if has_value() is true, as for std::optional.
  constexpr Index operator*() const noexcept { return index_; }
  constexpr const Index* operator->() const noexcept { return &index_; }

  friend constexpr bool operator==(optional_index a, optional_index b) noexcept {
    return a.index_ == b.index_;
  }
  friend constexpr bool operator!=(optional_index a, optional_index b) noexcept {
    return !(a == b);
  }
  friend constexpr bool operator<(optional_index a, optional_index b) noexcept {
    return a.index_ < b.index_;
  }

 private:
  static constexpr Index none = Index(UINT32_MAX);

  Index index_ = none;
};

}  // namespace lotus::tool

// Specializing std::hash in namespace std is allowed for user-defined types.
template <class Kind>
// NOLINTNEXTLINE(bugprone-std-namespace-modification,cert-dcl58-cpp)
struct std::hash<lotus::tool::strong_index<Kind>> {
  std::size_t operator()(lotus::tool::strong_index<Kind> index) const noexcept {
    return std::hash<std::uint32_t>()(index.value());
  }
};

#endif  // LOTUS_TOOL_BASE_INDEX_HPP
