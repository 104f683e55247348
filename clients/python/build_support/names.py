"""Names of the dataclasses, and what is special about some fields."""

# Message -> class. Others: the last part of their names, after that of the message around them.
CLASSES = {"TaskGroup": "Group", "ResourceRequest": "Resources", "SubmitJobsResponse.Submitted": "Submitted",
           "ExplainJobResponse": "Explanation", "PlanJobResponse": "Plan", "EstimateJobResponse": "Estimate",
           "WhoAmIResponse": "Identity", "ListMembersResponse": "Members", "ChangeEvent": "Event",
           "HyperNodeSpec.Member": "HyperNodeMember", "LifecyclePolicy": "Policy"}
ENUMS = {"ChangeEvent.Type": "EventType", "JobFilter.Order": "JobOrder", "LifecyclePolicy.Event": "PolicyEvent",
         "LifecyclePolicy.Action": "PolicyAction"}
# A resource with a spec: one class with the fields of both, as in a manifest.
FLAT = {"Job": "JobSpec", "Queue": "QueueSpec", "HyperNode": "HyperNodeSpec"}
# Where a field that most people leave out has a usual value.
DEFAULTS = {"TaskGroup.name": "worker", "DeviceRequest.kind": "gpu"}
# What is read and written: the closure of these.
ROOTS = ["Job", "Queue", "Node", "HyperNode", "PriorityClass", "Task", "ClusterInfo", "QueueShares", "ChangeEvent",
         "SubmitJobsResponse.Submitted", "ExplainJobResponse", "PlanJobResponse", "EstimateJobResponse", "WhoAmIResponse",
         "ListMembersResponse", "UsageRow", "CapacityRow", "EndedJob", "HistoryState"]
# What can be written as a manifest, and what has hours.
BASES = {"Job": "JobDocument", "Queue": "Document", "HyperNode": "Document", "PriorityClass": "Document",
         "ResourceTime": "Hours", "UsageRow": "Held", "CapacityRow": "Held", "EndedJob": "Held"}
# What the names of values begin with, where it is not the name of the enum.
PREFIXES = {"JobState": "JOB", "TaskState": "TASK", "NodeState": "NODE", "QueueState": "QUEUE"}
# Examples of the classes that people write most.
EXAMPLES = {
    "Job": ['>>> job = berth.Job("train", queue="research", groups=[berth.Group(replicas=4, command=["./train.py"],',
            '...     resources=berth.R(cpu=8, memory="64Gi", gpu=8))], walltime="12h")',
            ">>> job.groups[0].resources.memory",
            "68719476736"],
    "Group": [">>> berth.Group(replicas=2, command=['hostname'], env={'A': '1'})",
              "Group(replicas=2, command=['hostname'], env={'A': '1'})"],
    "Resources": [">>> berth.R(cpu='1500m', memory='2Gi', gpu=1)",
                  "Resources(cpu=1.5, memory=2147483648, gpu=1)"],
    "DeviceRequest": [">>> berth.R(gpu=berth.DeviceRequest(share=0.5))",
                      "Resources(gpu=DeviceRequest(share=0.5))"],
    "ResourceTime": [">>> berth.ResourceTime(cpu_milli_seconds=7_200_000).core_hours", "2.0"],
    "Array": [">>> berth.Array(size=100, parallelism=10)", "Array(size=100, parallelism=10)"],
    "Policy": [">>> berth.Policy(event='TaskFailed', exit_codes=[93], action='Abort').action",
               "<PolicyAction.ABORT: 'Abort'>"],
    "CheckpointPolicy": [">>> berth.CheckpointPolicy(signal='SIGUSR1', grace='2m').grace",
                         "datetime.timedelta(seconds=120)"],
}
