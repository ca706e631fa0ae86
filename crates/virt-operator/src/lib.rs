//! What installs the system: every object of the components.
