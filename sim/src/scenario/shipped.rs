//! The scenario files that come with the simulator.
//!
//! Responsible for: one list, by name. A test compares it with the directory `sim/scenarios`; a run that looks for a
//! mutation begins with those that must fail with it.

/// One file.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Its name without the ending.
    pub name: &'static str,
    /// What it says.
    pub text: &'static str,
}

/// Makes the list: a macro, because `include_str!` needs a literal.
macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(Shipped { name: $name, text: include_str!(concat!("../../scenarios/", $name, ".txt")) }),*]
    };
}

/// Every file in `sim/scenarios`, by name.
pub static SHIPPED: &[Shipped] = shipped![];
