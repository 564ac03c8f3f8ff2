//! Well-known keys: annotations, labels, taint keys and finalizers, upstream's and ours.

/// Ours: the boot that the leader recorded before its first grant; on Node.
pub const RECORDED_BOOT: &str = "mainstay.dev/recorded-boot";
/// Ours: `<boot id>@<time>`; the agent wrote it before a reboot that it knew of; on Node.
pub const REBOOT_ANNOUNCED: &str = "mainstay.dev/reboot-announced";
/// Ours: uid of the Node that a pod was bound to; on Pod, written by the binding.
pub const NODE_UID: &str = "mainstay.dev/node-uid";
/// Ours: `"true"` on a pod that must never run twice although nothing else says so.
pub const EXCLUSIVE: &str = "mainstay.dev/exclusive";
/// Upstream's: this pod object mirrors a static pod.
pub const MIRROR: &str = "kubernetes.io/config.mirror";
/// Upstream's: the attach/detach controller manages the node's volumes.
pub const CONTROLLER_MANAGED_ATTACH: &str = "volumes.kubernetes.io/controller-managed-attach-detach";

/// Upstream's label on EndpointSlices.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// Upstream's label on the pods of a StatefulSet.
pub const STATEFUL_SET_POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// Upstream's label: keep this node out of the count of a zone's health (NLC-33).
pub const EXCLUDE_DISRUPTION: &str = "node.kubernetes.io/exclude-disruption";
/// Upstream's zone labels, in the order in which they are looked up.
pub const ZONE_LABELS: [&str; 2] = ["failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"];
/// Upstream's region labels, in the order in which they are looked up.
pub const REGION_LABELS: [&str; 2] =
    ["failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"];

/// Taint: Ready is False.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// Taint: Ready is Unknown.
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// Taint: cordoned.
pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Taint: MemoryPressure is True.
pub const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";
/// Taint: DiskPressure is True.
pub const DISK_PRESSURE: &str = "node.kubernetes.io/disk-pressure";
/// Taint: PIDPressure is True.
pub const PID_PRESSURE: &str = "node.kubernetes.io/pid-pressure";
/// Taint: NetworkUnavailable is True.
pub const NETWORK_UNAVAILABLE: &str = "node.kubernetes.io/network-unavailable";
/// Taint: a human, or we, say that the machine is off.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// The value under which *we* set [`OUT_OF_SERVICE`]; a taint with another value is somebody else's and stays.
pub const OUT_OF_SERVICE_OURS: &str = "mainstay";

/// The namespace of the leases of nodes.
pub const NODE_LEASES: &str = "kube-node-lease";
