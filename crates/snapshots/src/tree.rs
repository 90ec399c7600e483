//! Trees on disk, reached by descriptor only: what is in them was put there by
//! a sandbox.

pub(crate) mod beneath;
pub(crate) mod holes;
pub(crate) mod links;
pub(crate) mod stack;
pub(crate) mod unchanged;
pub(crate) mod walk;
pub(crate) mod xattr;
