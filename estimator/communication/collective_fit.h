// Corrections to NCCL's own model that come from measurements (data/collective_fit.json): a
// shortest time for the rendezvous of the ranks, and the share of the modelled bandwidth that is
// reached at a given size.
//
// The constants are fitted only to the sources that the file names; `scripts/accuracy comm` judges
// them on all other sources.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/json_value.h"
#include "estimator/base/option.h"
#include "estimator/communication/nccl_tables.h"
#include "estimator/hardware/hardware.h"

namespace estimator {

struct LaunchFloor {
  std::string link;  ///< a link's id, or a kind of links
  double microseconds = 0;
  std::string source;
  bool assumed = false;  ///< copied from another kind of link
};
template <class Visitor>
void visit_fields(Visitor& visit, LaunchFloor& row) {
  visit("link", row.link, "id or kind");
  visit("microseconds", row.microseconds, "beyond NCCL's model");
  visit("source", row.source, "fitted on");
  visit("assumed", row.assumed, "not measured on such a link");
}

struct SharePoint {
  int64_t bytes = 0;
  double share = 1;
};
template <class Visitor>
void visit_fields(Visitor& visit, SharePoint& point) {
  visit("bytes", point.bytes, "size");
  visit("share", point.share, "of the modelled bandwidth");
}

/// The share is linear in log(bytes) between the points, and constant outside them.
struct ShareCurve {
  std::string source;
  std::vector<SharePoint> points;

  double at(int64_t bytes) const;
};
template <class Visitor>
void visit_fields(Visitor& visit, ShareCurve& curve) {
  visit("source", curve.source, "fitted on");
  visit("points", curve.points, "ascending");
}

/// NVLS works through the buffer in waves; a wave is one chunk of every channel and head. The links
/// idle while the first wave goes in and the last one comes out, and small chunks reach a smaller
/// share of the bandwidth than large ones.
struct NvlsFit {
  double waves = 0;            ///< waves that fill the pipeline of one node
  double waves_per_level = 0;  ///< further waves for each level of the tree between nodes
  std::string source;
  std::vector<SharePoint> chunk_share;  ///< by bytes of one chunk
};
template <class Visitor>
void visit_fields(Visitor& visit, NvlsFit& fit) {
  visit("waves", fit.waves, "of fill, one node");
  visit("waves_per_level", fit.waves_per_level, "of fill, more for each tree level");
  visit("source", fit.source, "fitted on");
  visit("chunk_share", fit.chunk_share, "by bytes of a chunk");
}

struct CollectiveFit {
  JsonValue sources;
  std::vector<LaunchFloor> launch_floors;
  ShareCurve ring_share, tree_ll128_share, tree_simple_share, all_to_all_share;
  NvlsFit nvls;

  /// The floor of the link or, if it has none of its own, of its kind of link.
  const LaunchFloor& floor(const Link& link) const;
};
template <class Visitor>
void visit_fields(Visitor& visit, CollectiveFit& fit) {
  visit("sources", fit.sources, "what the names mean");
  visit("launch_floors", fit.launch_floors, "by link");
  visit("ring_share", fit.ring_share, "ring with LL128 or Simple, by size");
  visit("tree_ll128_share", fit.tree_ll128_share, "tree with LL128, by size");
  visit("tree_simple_share", fit.tree_simple_share, "tree with Simple, by size");
  visit("all_to_all_share", fit.all_to_all_share, "pairs, by size");
  visit("nvls", fit.nvls, "NVLS and NVLS tree");
}

const CollectiveFit& collective_fit();

}  // namespace estimator
