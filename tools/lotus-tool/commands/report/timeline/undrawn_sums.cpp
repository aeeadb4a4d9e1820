#include "commands/report/timeline/undrawn_sums.hpp"

#include <utility>

#include "commands/report/base64.hpp"
#include "lotus/format/varint.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t grid_cells = 2000;

std::vector<std::int64_t> grid(const run_data& run, std::size_t cells) {
  std::vector<std::int64_t> edges;
  edges.reserve(cells + 1);
  const std::int64_t span_ns = run.last_ns - run.first_ns;
  for (std::size_t i = 0; i < cells; ++i) {
    edges.push_back(run.first_ns +
                    static_cast<std::int64_t>(static_cast<double>(span_ns) *
                                              static_cast<double>(i) / static_cast<double>(cells)));
  }
  edges.push_back(run.last_ns);
  return edges;
}

}  // namespace

std::vector<std::vector<std::int64_t>> cells_by_file(const run_data& run, std::size_t most) {
  std::vector<std::vector<std::int64_t>> of_file(run.files->files.size());
  for (const preprocessing_span& s : run.batches.preprocessing_spans()) {
    if (!s.file) continue;
    of_file[s.file->value()].push_back(s.start_ns);
    of_file[s.file->value()].push_back(s.end_ns());
  }
  const std::size_t each =
      std::max<std::size_t>(most / std::max<std::size_t>(1, of_file.size()), 1);
  for (std::vector<std::int64_t>& edges : of_file) {
    if (edges.empty()) {
      edges = grid(run, std::min(grid_cells, each));
      continue;
    }
    edges.push_back(run.first_ns);
    edges.push_back(run.last_ns);
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    if (edges.size() <= each + 1) continue;
    // There are too many batches for a cell per batch, so several adjacent cells are combined.
    const std::size_t joined = (edges.size() + each - 1) / each;
    std::vector<std::int64_t> fewer;
    for (std::size_t i = 0; i + 1 < edges.size(); i += joined) fewer.push_back(edges[i]);
    fewer.push_back(edges.back());
    edges = std::move(fewer);
  }
  return of_file;
}

void undrawn_sums::add(const operation& op) {
  // Successive operations are mostly in the same cell.
  if (op.start_ns < from_ns_ || op.start_ns >= to_ns_) find_cell(op.start_ns);
  std::vector<name_sum>& sums = cells_[cell_];
  auto at = std::find_if(sums.begin(), sums.end(),
                         [&op](const name_sum& of) { return of.name == op.name; });
  if (at == sums.end()) at = sums.insert(sums.end(), {op.name, 0, 0, 0});
  ++at->count;
  at->ns += op.duration_ns;
  at->longest_ns = std::max(at->longest_ns, op.duration_ns);
}

void undrawn_sums::find_cell(std::int64_t start_ns) {
  const auto behind = std::upper_bound(edges_.begin(), edges_.end(), start_ns);
  const auto place = static_cast<std::size_t>(behind - edges_.begin());
  cell_ = std::min(place > 0 ? place - 1 : 0, cells_.size() - 1);
  from_ns_ = behind == edges_.begin() ? INT64_MIN : *(behind - 1);
  to_ns_ = behind == edges_.end() ? INT64_MAX : *behind;
}

void undrawn_sums::write(json_writer&& json, std::int64_t run_first_ns,
                         const std::vector<std::uint32_t>& name_of) const {
  base64_writer bytes(json);
  std::int64_t before_ns = run_first_ns;
  for (std::size_t cell = 0; cell < cells_.size(); ++cell) {
    if (cells_[cell].empty()) continue;
    bytes.number(lotus::detail::to_zigzag(edges_[cell] - before_ns));
    bytes.number(static_cast<std::uint64_t>(edges_[cell + 1] - edges_[cell]));
    bytes.number(cells_[cell].size());
    for (const name_sum& of : cells_[cell]) {
      bytes.number(name_of[of.name]);
      bytes.number(of.count);
      bytes.number(static_cast<std::uint64_t>(of.ns));
      bytes.number(static_cast<std::uint64_t>(of.longest_ns));
    }
    before_ns = edges_[cell + 1];
  }
  bytes.finish();
}

}  // namespace lotus::tool
