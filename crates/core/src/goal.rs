//! The goal of packing: size, balance, read speed or build speed.

/// The goal of packing, which sets everything that the caller leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// The smallest image, whatever packing and reading cost.
    Size,
    /// Small, and quick to read.
    #[default]
    Balanced,
    /// Quick to read.
    Read,
    /// Quick to make.
    Build,
}

impl Goal {
    /// Every goal.
    pub const ALL: [Goal; 4] = [Goal::Size, Goal::Balanced, Goal::Read, Goal::Build];

    /// The name that users type: `size`, `balanced`, `read`, `build`.
    pub fn name(self) -> &'static str {
        match self {
            Goal::Size => "size",
            Goal::Balanced => "balanced",
            Goal::Read => "read",
            Goal::Build => "build",
        }
    }

    /// The goal of a name.
    pub fn named(name: &str) -> Option<Goal> {
        Goal::ALL.into_iter().find(|goal| goal.name() == name)
    }
}
