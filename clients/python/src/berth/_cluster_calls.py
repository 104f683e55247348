"""Calls about queues, nodes, topology and the cluster, for asyncio."""
from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Optional, Union

from berth import _values
from berth._calls import PAGE, Calls
from berth._channels import new_request_id
from berth.model import (
    ClusterInfo,
    HyperNode,
    Identity,
    Members,
    Node,
    NodeDrainMode,
    NodeState,
    PriorityClass,
    Queue,
    QueueShares,
)
from berth.v1 import access_pb2, cluster_pb2, hypernode_pb2, node_pb2, priority_class_pb2, queue_pb2


class ClusterCalls(Calls):
    """What is about queues, nodes and the cluster; a base of aio.Client."""

    async def queues(self) -> AsyncIterator[Queue]:
        """All queues, by name.

        >>> [queue.name async for queue in client.queues()]
        ['default', 'research']
        """
        request = queue_pb2.ListQueuesRequest(page_size=PAGE)
        async for page in self._pages("QueueService", "ListQueues", request, queue_pb2.ListQueuesResponse):
            for queue in page.queues:
                yield Queue.from_proto(queue)

    async def queue(self, name: str) -> Queue:
        """A queue with its status; NotFound.

        >>> print((await client.queue("research")).status.state)
        Open
        """
        return await self._queue("GetQueue", queue_pb2.GetQueueRequest(name=name))

    async def create_queue(self, queue: Queue) -> Queue:
        """Creates a queue. AlreadyExists, InvalidArgument with all violations, PermissionDenied.

        >>> queue = await client.create_queue(berth.Queue("spare", weight=2))
        >>> queue.weight
        2
        """
        return await self._queue("CreateQueue", queue_pb2.CreateQueueRequest(queue=queue.to_proto(),
                                                                            request_id=new_request_id()))

    async def update_queue(self, queue: Queue, fields: Sequence[str]) -> Queue:
        """Changes the named fields ("limit", "weight") to those of `queue`. Aborted if its etag is not the current one.

        >>> await client.update_queue(berth.Queue("research", max_jobs=100000), ["max_jobs"])
        Queue(...)
        """
        request = queue_pb2.UpdateQueueRequest(queue=queue.to_proto())
        request.update_mask.paths.extend(f"spec.{field}" for field in fields)
        return await self._queue("UpdateQueue", request)

    async def delete_queue(self, name: str) -> None:
        """Deletes a queue without jobs and queues below it; FailedPrecondition otherwise.

        >>> queue = await client.create_queue(berth.Queue("short-lived"))
        >>> await client.delete_queue("short-lived")
        """
        await self._call("QueueService", "DeleteQueue", queue_pb2.DeleteQueueRequest(name=name), queue_pb2.DeleteQueueResponse,
                         gone_is_done=True)

    async def open_queue(self, name: str) -> Queue:
        """Lets a closed queue accept and start jobs again.

        >>> queue = await client.open_queue("research")
        """
        return await self._queue("OpenQueue", queue_pb2.OpenQueueRequest(name=name))

    async def close_queue(self, name: str) -> Queue:
        """Running jobs continue; no job is accepted or started.

        >>> queue = await client.create_queue(berth.Queue("closing"))
        >>> print((await client.close_queue("closing")).status.state)
        Closed
        """
        return await self._queue("CloseQueue", queue_pb2.CloseQueueRequest(name=name))

    async def _queue(self, method: str, request: Any) -> Queue:
        return Queue.from_proto(await self._call("QueueService", method, request, queue_pb2.Queue))

    async def shares(self, queue: str = "") -> list[QueueShares]:
        """What queues are entitled to now, hold, borrow and lend; of one queue and those below it, or of all.

        >>> [shares.queue for shares in await client.shares("research")]
        ['research']
        """
        answer = await self._call("QueueService", "ListQueueShares", queue_pb2.ListQueueSharesRequest(queue=queue),
                                  queue_pb2.ListQueueSharesResponse)
        return [QueueShares.from_proto(one) for one in answer.shares]

    async def nodes(self, *, states: Sequence[Union[NodeState, str]] = (),
                    labels: Optional[Mapping[str, str]] = None) -> AsyncIterator[Node]:
        """Nodes by name, without their devices. All filters that are given must match.

        >>> [node.name async for node in client.nodes(states=["Ready"])]
        ['n1', 'n2']
        """
        numbers: Any = [NodeState(state).number for state in states]
        filter = node_pb2.NodeFilter(labels=dict(labels or {}), states=numbers)
        request = node_pb2.ListNodesRequest(page_size=PAGE, filter=filter)
        async for page in self._pages("NodeService", "ListNodes", request, node_pb2.ListNodesResponse):
            for node in page.nodes:
                yield Node.from_proto(node)

    async def node(self, name: str) -> Node:
        """A node with its devices; NotFound.

        >>> (await client.node("n1")).inventory.cpu
        8.0
        """
        return await self._node("GetNode", node_pb2.GetNodeRequest(name=name))

    async def cordon(self, name: str, reason: str = "") -> Node:
        """The node takes no new tasks until uncordon.

        >>> (await client.cordon("n2", "an example")).status.cordoned
        True
        """
        return await self._node("CordonNode", node_pb2.CordonNodeRequest(name=name, reason=reason))

    async def uncordon(self, name: str) -> Node:
        """Ends a cordon or drain, and forgets the faults of the node.

        >>> (await client.uncordon("n2")).status.cordoned
        False
        """
        return await self._node("UncordonNode", node_pb2.UncordonNodeRequest(name=name))

    async def drain(self, name: str, reason: str = "", *, mode: Union[NodeDrainMode, str] = "Now",
                    deadline: Optional[_values.DurationLike] = None, devices: Sequence[str] = ()) -> Node:
        """Moves the tasks of a node away, as `mode` says: "Now", "Checkpoint", "WhenPlaced" or "Wait".

        `deadline`: after it, tasks that are still there are stopped; not with "Now". `devices`: only their users leave.

        >>> print((await client.drain("n2", "an example")).status.drain.mode)
        Now
        >>> node = await client.uncordon("n2")
        """
        request = node_pb2.DrainNodeRequest(name=name, reason=reason, devices=devices)
        request.mode = NodeDrainMode(mode).number  # type: ignore[assignment]
        if deadline is not None:
            request.deadline.CopyFrom(_values.duration_to_pb(_values.as_duration(deadline)))
        return await self._node("DrainNode", request)

    async def delete_node(self, name: str) -> None:
        """Forgets a node that is silent or lost, and empty; FailedPrecondition otherwise.

        >>> try:
        ...     await client.delete_node("n1")
        ... except berth.FailedPrecondition as error:
        ...     print(error.code)
        FAILED_PRECONDITION
        """
        await self._call("NodeService", "DeleteNode", node_pb2.DeleteNodeRequest(name=name), node_pb2.DeleteNodeResponse,
                         gone_is_done=True)

    async def _node(self, method: str, request: Any) -> Node:
        return Node.from_proto(await self._call("NodeService", method, request, node_pb2.Node))

    async def hyper_nodes(self, *, kind: str = "", source: str = "") -> AsyncIterator[HyperNode]:
        """HyperNodes by kind and name. All filters that are given must match.

        >>> [one.name async for one in client.hyper_nodes(kind="network")]
        []
        """
        request = hypernode_pb2.ListHyperNodesRequest(page_size=PAGE, kind=kind, source=source)
        async for page in self._pages("HyperNodeService", "ListHyperNodes", request, hypernode_pb2.ListHyperNodesResponse):
            for one in page.hyper_nodes:
                yield HyperNode.from_proto(one)

    async def hyper_node(self, name: str) -> HyperNode:
        """A HyperNode with its status; NotFound.

        >>> try:
        ...     await client.hyper_node("rack-1")
        ... except berth.NotFound as error:
        ...     print(error.code)
        NOT_FOUND
        """
        request = hypernode_pb2.GetHyperNodeRequest(name=name)
        return HyperNode.from_proto(await self._call("HyperNodeService", "GetHyperNode", request, hypernode_pb2.HyperNode))

    async def apply_hyper_nodes(self, hyper_nodes: Iterable[HyperNode], *, delete: Sequence[str] = (),
                                validate_only: bool = False) -> tuple[int, int, int, int]:
        """Creates and updates HyperNodes, and deletes others by name, all or nothing.

        Returns how many were created, updated, left as they are, and deleted. FailedPrecondition names those at fault.

        >>> rack = berth.HyperNode("rack-2", tier=1, members=[berth.HyperNodeMember(type="Node", exact="n2")])
        >>> await client.apply_hyper_nodes([rack], validate_only=True)
        (1, 0, 0, 0)
        """
        request = hypernode_pb2.ApplyHyperNodesRequest(delete_names=delete, validate_only=validate_only,
                                                       request_id=new_request_id())
        request.hyper_nodes.extend(one.to_proto() for one in hyper_nodes)
        answer = await self._call("HyperNodeService", "ApplyHyperNodes", request, hypernode_pb2.ApplyHyperNodesResponse)
        return answer.created, answer.updated, answer.unchanged, answer.deleted

    async def priority_classes(self) -> AsyncIterator[PriorityClass]:
        """All priority classes, by name.

        >>> [one.name async for one in client.priority_classes()]
        []
        """
        request = priority_class_pb2.ListPriorityClassesRequest(page_size=PAGE)
        async for page in self._pages("PriorityClassService", "ListPriorityClasses", request,
                                      priority_class_pb2.ListPriorityClassesResponse):
            for one in page.priority_classes:
                yield PriorityClass.from_proto(one)

    async def cluster(self) -> ClusterInfo:
        """The cluster as a whole: version, revision, numbers of jobs and nodes, capacity.

        >>> (await client.cluster()).nodes["READY"]
        2
        """
        answer = await self._call("ClusterService", "GetClusterInfo", cluster_pb2.GetClusterInfoRequest(),
                                  cluster_pb2.ClusterInfo)
        return ClusterInfo.from_proto(answer)

    async def members(self) -> Members:
        """The servers of a cluster with high availability; none in a cluster with one server.

        >>> (await client.members()).members
        []
        """
        answer = await self._call("ClusterService", "ListMembers", cluster_pb2.ListMembersRequest(),
                                  cluster_pb2.ListMembersResponse)
        return Members.from_proto(answer)

    async def whoami(self) -> Identity:
        """Who the server takes the caller for, and what the caller may do.

        >>> (await client.whoami()).enforced
        False
        """
        answer = await self._call("AccessService", "WhoAmI", access_pb2.WhoAmIRequest(), access_pb2.WhoAmIResponse)
        return Identity.from_proto(answer)
