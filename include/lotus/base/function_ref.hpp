// Provides function_ref, a reference to a callable. A function with a parameter of this type
// accepts any callable without being a template.
#ifndef LOTUS_BASE_FUNCTION_REF_HPP
#define LOTUS_BASE_FUNCTION_REF_HPP

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

template <class Signature>
class function_ref;

/// Refers to a callable that the caller owns, like std::function_ref of C++26. Use it only for
/// parameters: unlike a template, the called function is not compiled again for each lambda. The
/// callable must outlive the call.
/// Errors: none thrown; the callable must not throw either.
template <class Result, class... Arguments>
class function_ref<Result(Arguments...)> {
 public:
  template <class Callable>
  // NOLINTNEXTLINE(google-explicit-constructor): a parameter
  LOTUS_DETAIL_ALWAYS_INLINE function_ref(const Callable& callable) noexcept
      : callable_{&callable}, call_{[](const void* on, Arguments... with) noexcept -> Result {
          return (*static_cast<const Callable*>(on))(static_cast<Arguments&&>(with)...);
        }} {}

  LOTUS_DETAIL_ALWAYS_INLINE Result operator()(Arguments... with) const noexcept {
    return call_(callable_, static_cast<Arguments&&>(with)...);
  }

 private:
  const void* callable_;
  Result (*call_)(const void*, Arguments...) noexcept;
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_BASE_FUNCTION_REF_HPP
