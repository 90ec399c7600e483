//! Trees as tar archives, on the handle.

use super::Services;
use super::answer::object;
use super::arguments::{Arguments, wrong};
use crate::services::commands::invalid;
use crate::services::files::Placement;
use capnweb::Value;
use hutch_protocol::ApiError;

/// `readTar(path, {followLink?}?)`: the archive as a stream of bytes.
pub(super) async fn read(services: &Services, mut arguments: Arguments) -> Result<Value, ApiError> {
    let path = arguments.text("path")?;
    let follow = arguments.options()?.flag("followLink")?;
    Ok(services.files.read_tar(&path, follow).await?.into())
}

/// `writeTar(path, stream, {place?: "into" | "as", keepOwners?}?)`: `{entries, bytes}`.
pub(super) async fn write(
    services: &Services,
    mut arguments: Arguments,
) -> Result<Value, ApiError> {
    let path = arguments.text("path")?;
    let stream = match arguments.value() {
        Value::Readable(stream) => stream,
        other => return Err(wrong("content", "a stream of bytes", &other)),
    };
    let mut options = arguments.options()?;
    let placement = match options.text("place")?.as_deref() {
        None | Some("into") => Placement::Into,
        Some("as") => Placement::As,
        Some(_) => {
            return Err(invalid(
                "place",
                "place is \"into\", for a directory that takes the members, or \"as\", for what the one thing becomes",
            ));
        }
    };
    let keep_owners = options.flag("keepOwners")?;
    let files = &services.files;
    let copied = files
        .write_tar(&path, stream, placement, keep_owners)
        .await?;
    Ok(Value::Object(object([
        ("entries", super::files::size(copied.entries)),
        ("bytes", super::files::size(copied.bytes)),
    ])))
}
