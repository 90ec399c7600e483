//! From a tree to an archive and a listing, and back.

pub(crate) mod check;
pub(crate) mod damage;
pub(crate) mod gather;
pub(crate) mod hashing;
pub(crate) mod layer;
pub(crate) mod listing;
pub(crate) mod pipe;
pub(crate) mod place;
pub(crate) mod recall;
pub(crate) mod unpack;
