// The options of a cluster; see options.h.
#pragma once

#include "estimator/base/option.h"
#include "estimator/plan/plan.h"

namespace estimator {

template <class Visitor>
void visit_machines(Visitor& visit, ClusterConfig& cluster) {
  visit("gpu", cluster.gpu, {"a GPU of `onerank list gpus`", {ours({"--gpu"})}});
  visit("nodes",
        cluster.nodes,
        {"machines; auto: world size / gpus_per_node", kDegree, {ours({"--nodes"})}});
  visit("gpus_per_node",
        cluster.gpus_per_node,
        {"GPUs of one machine; auto: the usual ones of the GPU (8, GB200 4, GH200 1), or the world "
         "if "
         "smaller",
         kDegree,
         {ours({"--gpus-per-node"})}});
}

template <class Visitor>
void visit_network(Visitor& visit, ClusterConfig& cluster) {
  visit("intra_link",
        cluster.intra_link,
        Option{"link inside a machine (`onerank list links`); auto: the GPU's",
               {ours({"--intra-link"})}}
            .of_the_cluster());
  visit("inter_link",
        cluster.inter_link,
        Option{"NIC between machines; auto: the usual one for the GPU", {ours({"--inter-link"})}}
            .of_the_cluster());
  visit("nics_per_node",
        cluster.nics_per_node,
        Option{"NICs of one machine; auto: the number that machines with this NIC usually have",
               kDegree,
               {ours({"--nics-per-node"})}}
            .of_the_cluster());
  visit("nodes_per_pod",
        cluster.nodes_per_pod,
        Option{"machines below one spine switch at full bandwidth; auto: all",
               kDegree,
               {ours({"--nodes-per-pod"})}}
            .of_the_cluster());
  visit("spine_oversubscription",
        cluster.spine_oversubscription,
        Option{"bandwidth inside a pod divided by bandwidth out of it: 7 for 7:1",
               Range{1, 1000, "1 for a network without oversubscription, 7 for 7:1"},
               {ours({"--spine-oversubscription"})}}
            .of_the_cluster());
  visit("sharp",
        cluster.sharp,
        Option{"let the network's switches reduce (InfiniBand SHARP, NCCL's CollNet)",
               {ours({"--sharp", "true"})}}
            .of_the_cluster());
  visit("nvls",
        cluster.nvls,
        Option{"let NVSwitches reduce if they can (NCCL_NVLS_ENABLE)",
               {ours({"--no-nvls", "false", "no reductions in NVSwitches (NCCL_NVLS_ENABLE=0)"})}}
            .of_the_cluster());
  visit("nccl_tests",
        cluster.nccl_tests,
        Option{"output files of nccl-tests from such machines; they replace the model for groups "
               "that they fit",
               {ours({"--nccl-tests"})}}
            .of_the_cluster());
}

template <class Visitor>
void visit_gpu_deviation_and_price(Visitor& visit, ClusterConfig& cluster) {
  visit("gpu_deviation",
        cluster.gpu_deviation,
        {"standard deviation of the GPUs' time for the same arithmetic, as a share of the mean "
         "(ranks wait for the slowest GPU); 0: all GPUs are alike; auto: a published value of "
         "other clusters",
         Range{0, 0.2, "0.015 for 1.5 %, 0 for GPUs that are all alike"},
         {ours({"--gpu-deviation"})}});
  visit("usd_per_gpu_hour",
        cluster.usd_per_gpu_hour,
        Option{"US dollars for one GPU hour, for the cost of the training",
               Range{0, 1e6},
               {ours({"--price"})}}
            .of_the_cluster());
}

template <class Visitor>
void visit_fields(Visitor& visit, ClusterConfig& cluster) {
  visit_machines(visit, cluster);
  visit_network(visit, cluster);
  visit_gpu_deviation_and_price(visit, cluster);
}

}  // namespace estimator
