// Defines the header with which each block of a ring file begins (see record/ring_layout.hpp).
#ifndef LOTUS_RECORD_BLOCK_HEADER_HPP
#define LOTUS_RECORD_BLOCK_HEADER_HPP

#include <atomic>
#include <cstdint>

#include "lotus/config.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

enum class block_kind : std::uint32_t { none = 0, ring = 1, names = 2, aggregates = 3 };

struct block_header {
  std::atomic<block_kind> kind;  ///< stored last, so that readers see no incomplete block
  std::uint32_t unused;
  std::uint64_t bytes;  ///< size of the block including this header
};

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_RECORD_BLOCK_HEADER_HPP
