// Sections that several pages have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/cluster/roofline.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"
#include "sim/cli/page/page.h"
#include "sim/cli/page/rank_detail.h"
#include "sim/cli/page/step_picture.h"

namespace sim {

/// What the worst rank needs, and what is left. `assumed` is what is not simulated, `rank` the
/// words for it.
std::vector<Headline> memory_headlines(const estimator::Verdict& verdict,
                                       const std::string& assumed,
                                       const std::string& rank);

/// "onerank 0.1.0, torch 2.11.0"
std::string tool_words(const estimator::ToolVersion& tool);

/// The lines of a text that ends with a newline.
std::vector<std::string> lines_of(const std::string& text);

/// Its name, or else its model and GPU.
std::string title_of(const estimator::Plan& plan);
/// The names of all of them, each once: "llama3-8b on h100-sxm, llama3-8b on b200".
std::string title_of(const std::vector<estimator::Plan>& plans);

/// The memory of each class; the page's data must have the estimate.
PageSection classes_section(const estimator::Verdict& verdict,
                            const std::vector<estimator::RankClassEstimate>& classes);

/// What the worst rank needs, term by term.
PageSection terms_section(const estimator::RankClassEstimate& worst);

/// Adds memory over time, and the peak as treemap and tree, with the data of their pictures. The
/// profile is of the same rank, or null.
void add_rank_detail(const RankDetail& detail,
                     const estimator::RankProfile* profile,
                     int64_t limit_bytes,
                     Page& page);

/// The picture of the step; `lines` says what its lines are.
void add_step(const std::string& lines, StepPicture picture, Page& page);

/// What bounds the step, and its kernels.
void add_roofline(const estimator::Roofline& roofline, Page& page);

/// Training and its cost; nothing without a training.
void add_training(const std::optional<estimator::TrainingEstimate>& training, Page& page);

/// Rates, assumptions, and what is left out.
void add_origins(const std::vector<estimator::RateTerm>& rates,
                 const std::vector<std::string>& assumptions,
                 const std::vector<std::string>& not_modelled,
                 Page& page);

}  // namespace sim
