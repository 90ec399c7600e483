//! Machines that an earlier server left.

use std::sync::Arc;

use hutch_failpoint::failpoint;

use crate::ports::Machine;

/// Connects to a machine, which a server that died may have left frozen.
pub(crate) async fn reached(machine: &Arc<dyn Machine>) -> bool {
    if let Err(error) = machine.thaw().await {
        tracing::warn!(sandbox = %machine.key(), %error, "a machine to adopt was not thawed");
    }
    match machine.connect().await {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(sandbox = %machine.key(), %error, "a machine to adopt does not answer");
            false
        }
    }
}

pub(crate) async fn end(machine: &Arc<dyn Machine>) {
    if let Err(error) = machine.stop().await {
        tracing::error!(sandbox = %machine.key(), %error, "a foreign machine was not ended");
    }
    let _ = failpoint!("adopt.ended");
}
