// Provides the adapter for libtorch, which records the batches, transforms and datasets of
// libtorch's data loader. lotus.hpp does not include it, because it needs libtorch's headers.
//
//   auto loader = lotus::torch::make_data_loader<Sampler>(
//       traced(my_dataset{...}).map(traced(Normalize<>{...})).map(traced(Stack<>{})), options);
//   for (auto& batch : *loader) ...
//
// Tested with libtorch 1.13, 2.7 and 2.15 (whose headers need C++20). Call make_data_loader() by
// its qualified name: otherwise the compiler would also find the function in torch::data.
#ifndef LOTUS_TORCH_HPP
#define LOTUS_TORCH_HPP

#include "lotus/lotus.hpp"
#if LOTUS_SUPPORTED
  #include "lotus/torch/annotation.hpp"
#endif
#include "lotus/torch/data_loader.hpp"
#include "lotus/torch/traced.hpp"

#endif  // LOTUS_TORCH_HPP
