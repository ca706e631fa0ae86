//! What became of the wish for a machine.

/// What became of the wish for a machine, as far as one step could see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// It was carried out.
    #[default]
    Fulfilled,
    /// Something that others bring is not there yet. What was told before still holds.
    Waits,
    /// The same, and it takes longer than it should.
    Overdue(String),
    /// It could not be carried out, and is tried again.
    Failed(String),
    /// It can never be carried out by this launcher.
    Hopeless(String),
}
