#include "export/export.hpp"

#include <ostream>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "base/output_file.hpp"
#include "export/pstats.hpp"
#include "log/log_files.hpp"
#include "model/call_profile.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

int run_export(const export_options& options, std::ostream& out, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  const std::vector<run_files> runs = find_runs(options.dir, options.prefix, diagnostics);
  if (runs.size() > 1) {
    throw input_error(options.dir + ": holds several runs, such as " + runs[0].dir + " and " +
                      runs[1].dir + "; name one of them");
  }
  const run_data run = read_run(runs.front(), {false, false, true}, diagnostics);
  if (run.operations == 0) throw input_error(options.dir + ": no operations in its logs");
  const int status = diagnostics.finish(options.strict);
  if (status != exit_fine) return status;
  output_file file(options.output, out);
  file.write(pstats_of(profile_calls(run), run.names));
  file.commit();
  return exit_fine;
}

}  // namespace lotus::tool
