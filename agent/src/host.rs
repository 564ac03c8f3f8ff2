//! Pods as they are on the host: what a body reports of the runtime and the mount table.
//!
//! Responsible for: the words of an observation. Leaves to the body: reading them from the runtime's list (labels of
//! sandboxes carry uid, boot and exclusiveness) and from the mount table; to [`crate::pod`] what follows from them.
//!
//! Invariant: this is the truth. A memory of the agent that contradicts it is wrong (STYLE, "act on what is").

use api::{BootId, Name, Namespace, Time, Uid};

/// One pod on the host. All of it empty means: nothing of this pod is here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodOnHost {
    /// Identity of the pod.
    pub uid: Uid,
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name.
    pub name: Name,
    /// True if the sandbox, or a mount, was made as *guarded*: what the guard kills.
    pub exclusive: bool,
    /// The sandbox, alive or left over from another boot.
    pub sandbox: Option<Sandbox>,
    /// The newest container of each name, alive or ended.
    pub containers: Vec<ContainerOnHost>,
    /// Volumes of claims that are mounted for this pod, or may be (a mount in doubt counts as mounted).
    pub mounts: Vec<Mounted>,
}

/// A pod's sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// The boot that made it. Of another boot: dead, whatever the runtime says (P52).
    pub boot: BootId,
    /// True while its network and cgroup stand. The guard's kill ends a sandbox.
    pub ready: bool,
    /// Address of the pod.
    pub address: String,
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerOnHost {
    /// Its name.
    pub name: String,
    /// 0 for the first, then restarts.
    pub attempt: u32,
    /// What it does.
    pub state: ContainerState,
}

/// What a container does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerState {
    /// It runs.
    Running {
        /// Start of the process.
        started_at: Time,
    },
    /// It ended.
    Exited {
        /// Exit code; 128 + signal.
        code: i32,
        /// Start of the process.
        started_at: Time,
        /// End of the process.
        finished_at: Time,
    },
}

/// A mounted volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounted {
    /// The claim, in the pod's namespace.
    pub claim: Name,
    /// Unique name of the volume, or empty.
    pub volume: String,
}

// === impl PodOnHost ===

impl PodOnHost {
    /// A pod of which nothing is here.
    pub fn nothing(uid: &Uid, namespace: &Namespace, name: &Name) -> Self {
        Self { uid: uid.clone(), namespace: namespace.clone(), name: name.clone(), ..Self::default() }
    }

    /// True if a container runs in this boot. Containers of another boot's sandbox are dead, whatever the list says.
    pub fn runs(&self, boot: &BootId) -> bool {
        !self.is_of_other_boot(boot) && self.containers.iter().any(ContainerOnHost::is_running)
    }

    /// True if the sandbox was made by another boot.
    pub fn is_of_other_boot(&self, boot: &BootId) -> bool {
        self.sandbox.as_ref().is_some_and(|s| s.boot != *boot)
    }

    /// True if the sandbox was made by this boot and stands.
    pub fn has_ready_sandbox(&self, boot: &BootId) -> bool {
        self.sandbox.as_ref().is_some_and(|s| s.boot == *boot && s.ready)
    }

    /// True if nothing of the pod is on the host.
    pub fn is_empty(&self) -> bool {
        self.sandbox.is_none() && self.containers.is_empty() && self.mounts.is_empty()
    }

    /// True if that claim is mounted.
    pub fn has_mount(&self, claim: &Name) -> bool {
        self.mounts.iter().any(|m| m.claim == *claim)
    }

    /// The container of that name.
    pub fn container(&self, name: &str) -> Option<&ContainerOnHost> {
        self.containers.iter().find(|c| c.name == name)
    }
}

impl ContainerOnHost {
    /// True while its process lives.
    pub fn is_running(&self) -> bool {
        match self.state {
            ContainerState::Running { .. } => true,
            ContainerState::Exited { .. } => false,
        }
    }
}
