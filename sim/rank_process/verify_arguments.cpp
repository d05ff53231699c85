#include "sim/rank_process/verify_arguments.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace sim {

VerifyArguments parse_verify_arguments(int argc, char** argv) {
  VerifyArguments arguments;
  WorldSeat seat{.rank = -1};
  int64_t join_seconds = arguments.job.timeouts.join.count();
  int64_t collective_seconds = arguments.job.timeouts.collective.count();
  CLI::App app("Runs real ranks of a resolved plan and compares them with the stub.");
  app.add_option("--plan", arguments.plan_file, "resolved plan")->required();
  app.add_option("--output-dir", arguments.job.output_folder, "for the verification")->required();
  app.add_option("--errors", arguments.job.errors_file, "for the error that ends it");
  app.add_option("--join-timeout", join_seconds, "seconds to wait until every rank has joined");
  app.add_option("--timeout", collective_seconds, "seconds for one collective");
  app.add_option(
      "--rank", seat.rank, "the rank of this process in a world that a launcher started");
  app.add_option("--world-size", seat.size, "its ranks");
  app.add_option("--master-addr", seat.host, "where it meets");
  app.add_option("--master-port", seat.port, "where it meets");
  app.add_option("--store-prefix", seat.store_prefix, "of its keys");
  app.add_flag("--keep-store", seat.keeps_store, "open the store it meets in");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) std::exit(app.exit(error));
    throw estimator::UserError(
        {.what = error.what(), .where = "onerank-rank verify", .help = "see --help"});
  }
  if (seat.rank >= 0) arguments.job.seat = seat;
  arguments.job.timeouts = {.join = std::chrono::seconds(join_seconds),
                            .collective = std::chrono::seconds(collective_seconds)};
  return arguments;
}

}  // namespace sim
