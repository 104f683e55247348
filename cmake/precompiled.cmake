# The precompiled headers, each for all targets with PCH NAME (cmake/targets.cmake). They contain only those headers of
# the project that nearly every file of those targets includes anyway: a change to any other would rebuild all of them.
set(MODEL <core/model/cluster_state.h> <core/model/event.h> <core/engine/cycle.h>)
set(API <grpcpp/grpcpp.h> <berth/v1/job.grpc.pb.h> <berth/v1/queue.grpc.pb.h> <berth/v1/node.grpc.pb.h>
    <berth/v1/hypernode.grpc.pb.h> <berth/v1/explain.grpc.pb.h> <berth/v1/watch.grpc.pb.h> <berth/v1/cluster.grpc.pb.h>
    <berth/v1/agent.grpc.pb.h> <berth/config/v1/config.pb.h>)
set(RECORDS <google/protobuf/message.h> <berth/store/v1/store.pb.h> <berth/sim/v1/scenario.pb.h>)

berth_precompiled(pch_plain LINK ${BERTH_ABSL} HEADERS)
berth_precompiled(pch_core OPTIMIZED LINK ${BERTH_ABSL} HEADERS ${MODEL})
# Messages without gRPC: the store, simulation, replay.
berth_precompiled(pch_store OPTIMIZED LINK berth_core berth_support berth_proto_store berth_proto_sim HEADERS ${MODEL} ${RECORDS})
# gRPC without the engine: clients and agents.
berth_precompiled(pch_grpc LINK berth_support berth_proto_config CLI11 HEADERS ${API} <CLI/CLI.hpp>)
berth_precompiled(pch_server LINK berth_core berth_support berth_proto_config CLI11 HEADERS ${MODEL} ${API} <CLI/CLI.hpp>)

if(BUILD_TESTING AND NOT BERTH_FUZZ)
  set(CATCH <catch2/catch.hpp>)
  berth_precompiled(pch_core_tests LINK ${BERTH_ABSL} Catch2::Catch2 HEADERS ${CATCH} ${MODEL})
  berth_precompiled(pch_property_tests OPTIMIZED LINK ${BERTH_ABSL} Catch2::Catch2 HEADERS ${CATCH} ${MODEL})
  berth_precompiled(pch_store_tests LINK berth_core berth_support berth_proto_store berth_proto_sim Catch2::Catch2
    HEADERS ${CATCH} ${MODEL} ${RECORDS})
  berth_precompiled(pch_grpc_tests LINK berth_support berth_proto_config Catch2::Catch2 HEADERS ${CATCH} ${API})
  berth_precompiled(pch_server_tests LINK berth_core berth_support berth_proto_config Catch2::Catch2 HEADERS ${CATCH} ${MODEL} ${API})
endif()
