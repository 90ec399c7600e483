//! The native driver: Linux namespaces, made by a small spawner process.

mod driver;
mod options;
mod spawner;

pub use driver::NativeDriver;
pub use options::NativeOptions;
pub use spawner::spawner_main;
