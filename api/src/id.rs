//! Ids by type: two strings of different meaning never have the same type.
//!
//! Responsible for: names, uids, boot ids, revisions, epochs. Leaves to bodies and to the simulator: making uids;
//! a mind derives names from what it knows and is given everything else.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Makes a shared-string id. A macro, because a generic `Id<Tag>` would print and document worse.
macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// True if there is no text: the id is not known.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self(Arc::from(""))
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    };
}

/// Makes a number id.
macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The one after this.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

string_id! {
    /// The name of an object inside its namespace.
    Name
}
string_id! {
    /// A namespace; empty for objects of the cluster.
    Namespace
}
string_id! {
    /// The name of a Node. A label on the door: another machine may carry it tomorrow.
    NodeName
}
string_id! {
    /// The identity of one object over its life; a new object of the same name has another.
    Uid
}
string_id! {
    /// One boot of one machine (`/proc/sys/kernel/random/boot_id`). Boot ids have no order.
    BootId
}
number_id! {
    /// A revision of the store: one number for all objects, growing with every write.
    Rev
}
number_id! {
    /// A term of leadership; every controller write is compared with it.
    Epoch
}
number_id! {
    /// A version of the council's membership; grows with every change.
    CouncilEpoch
}
number_id! {
    /// The number of one attempt to close a node at the council; a late answer to an older one must not count.
    CloseSeq
}
number_id! {
    /// `metadata.generation`: grows with every change of the wish, not of the status.
    Generation
}

impl From<&NodeName> for Name {
    fn from(node: &NodeName) -> Self {
        Self(node.0.clone())
    }
}

impl From<&Name> for NodeName {
    fn from(name: &Name) -> Self {
        Self(name.0.clone())
    }
}
