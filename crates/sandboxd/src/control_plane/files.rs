//! The file methods, of the `files` domain and of the handle. They differ in where options
//! come: the domain has the session id before them, the handle among them.

use super::Services;
use super::answer::{now, object};
use super::arguments::{Arguments, Options, wrong};
use crate::services::commands::invalid;
use crate::services::files::{Content, ListOptions, NewContent, ReadEncoding};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use capnweb::{Object, Value};
use hutch_protocol::{ApiError, ErrorCode};

/// Base64 with or without its padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Whose form of a method is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Surface {
    /// `files.method(…, sessionId, options)`.
    Domain,
    /// `sandbox.method(…, options)`.
    Handle,
}

impl Surface {
    fn options(self, arguments: &mut Arguments) -> Result<Options, ApiError> {
        if self == Self::Domain {
            arguments.no_session()?;
        }
        let mut options = arguments.options()?;
        options.no_session()?;
        Ok(options)
    }
}

/// Calls the file method `name`; `None` when there is none of that name.
pub(super) async fn call(
    services: &Services,
    surface: Surface,
    name: &str,
    arguments: Arguments,
) -> Option<Result<Value, ApiError>> {
    Some(match name {
        "readFile" => read_file(services, surface, arguments).await,
        "readFileStream" => read_file_stream(services, surface, arguments).await,
        "writeFile" => write_file(services, surface, arguments).await,
        "writeFileStream" if surface == Surface::Domain => {
            write_file_stream(services, arguments).await
        }
        "deleteFile" => delete_file(services, arguments).await,
        "renameFile" => rename(services, "file.rename", arguments).await,
        "moveFile" => rename(services, "file.move", arguments).await,
        "mkdir" => mkdir(services, surface, arguments).await,
        "listFiles" => list_files(services, surface, arguments).await,
        "exists" => exists(services, arguments).await,
        _ => return None,
    })
}

/// `{success, path, content, encoding, isBinary, size, mimeType, timestamp}`; with
/// `encoding: "none"` the content is a stream of bytes.
async fn read_file(
    services: &Services,
    surface: Surface,
    mut arguments: Arguments,
) -> Result<Value, ApiError> {
    let path = arguments.text("path")?;
    let mut options = surface.options(&mut arguments)?;
    let known = [
        ("utf-8", Some(ReadEncoding::Utf8)),
        ("utf8", Some(ReadEncoding::Utf8)),
        ("base64", Some(ReadEncoding::Base64)),
        ("none", None),
    ];
    let Some(encoding) = options.encoding(&known, Some(ReadEncoding::Fitting))? else {
        let file = services.files.stream(&path).await?;
        let mut result = done(&path);
        result.insert("content", file.content);
        result.insert("size", size(file.size));
        result.insert("mimeType", file.media_type);
        return Ok(result.into());
    };
    let file = services.files.read(&path, encoding).await?;
    let (content, encoding, binary) = match file.content {
        Content::Text(text) => (text, "utf-8", false),
        Content::Base64(text) => (text, "base64", true),
    };
    let mut result = done(&path);
    result.insert("content", content);
    result.insert("encoding", encoding);
    result.insert("isBinary", binary);
    result.insert("size", size(file.size as u64));
    result.insert("mimeType", file.media_type);
    Ok(result.into())
}

/// Server-sent events: `metadata`, `chunk`s, `complete`, or `error`.
async fn read_file_stream(
    services: &Services,
    surface: Surface,
    mut arguments: Arguments,
) -> Result<Value, ApiError> {
    let path = arguments.text("path")?;
    surface.options(&mut arguments)?;
    Ok(services.files.event_stream(&path).await.into())
}

/// `{success, path, bytesWritten, timestamp}`. Content is text, base64 text with
/// `encoding: "base64"`, bytes, or a stream of bytes.
async fn write_file(
    services: &Services,
    surface: Surface,
    mut arguments: Arguments,
) -> Result<Value, ApiError> {
    let path = arguments.text("path")?;
    let content = arguments.value();
    let mut options = surface.options(&mut arguments)?;
    let known = [("utf-8", false), ("utf8", false), ("base64", true)];
    let base64 = options.encoding(&known, false)?;
    let mut official = None;
    let content = match content {
        Value::String(text) => {
            official = Some(text.len() as u64);
            NewContent::Bytes(if base64 {
                decode(&text)?
            } else {
                Bytes::from(text)
            })
        }
        Value::Bytes(bytes) => NewContent::Bytes(bytes),
        Value::Readable(stream) => NewContent::Stream(stream),
        other => return Err(wrong("content", "a string, bytes or a stream", &other)),
    };
    let written = services.files.write(&path, content).await?;
    let mut result = done(&path);
    // The official server counts the text as it came, also when that is base64.
    let told = official
        .filter(|_| surface == Surface::Domain)
        .unwrap_or(written);
    result.insert("bytesWritten", size(told));
    Ok(result.into())
}

async fn write_file_stream(
    services: &Services,
    mut arguments: Arguments,
) -> Result<Value, ApiError> {
    let path = arguments.text("path")?;
    let stream = match arguments.value() {
        Value::Readable(stream) => stream,
        other => return Err(wrong("content", "a stream", &other)),
    };
    arguments.no_session()?;
    let written = services
        .files
        .write(&path, NewContent::Stream(stream))
        .await?;
    let mut result = done(&path);
    result.insert("bytesWritten", size(written));
    Ok(result.into())
}

async fn delete_file(services: &Services, mut arguments: Arguments) -> Result<Value, ApiError> {
    let path = arguments.text("path")?;
    arguments.no_session()?;
    services.files.delete(&path).await?;
    Ok(done(&path).into())
}

async fn rename(
    services: &Services,
    operation: &'static str,
    mut arguments: Arguments,
) -> Result<Value, ApiError> {
    let from = arguments.text("path")?;
    let to = arguments.text("newPath")?;
    arguments.no_session()?;
    services.files.rename(operation, &from, &to).await?;
    let mut result = done(&from);
    if operation == "file.rename" {
        result.insert("oldPath", from);
    }
    result.insert("newPath", to);
    Ok(result.into())
}

async fn mkdir(
    services: &Services,
    surface: Surface,
    mut arguments: Arguments,
) -> Result<Value, ApiError> {
    let path = arguments.text("path")?;
    let recursive = surface.options(&mut arguments)?.flag("recursive")?;
    services.files.make_directory(&path, recursive).await?;
    let mut result = done(&path);
    result.insert("recursive", recursive);
    Ok(result.into())
}

/// `{success, path, files, count, timestamp}`.
async fn list_files(
    services: &Services,
    surface: Surface,
    mut arguments: Arguments,
) -> Result<Value, ApiError> {
    let path = arguments.text("path")?;
    let mut options = surface.options(&mut arguments)?;
    let options = ListOptions {
        recursive: options.flag("recursive")?,
        include_hidden: options.flag("includeHidden")?,
    };
    let files = services.files.list(&path, options).await?;
    let mut result = done(&path);
    result.insert("count", size(files.len() as u64));
    let files = Value::serialize(&files).map_err(|error| {
        ApiError::new(
            ErrorCode::InternalError,
            format!("the listing of {path} cannot be sent: {error}"),
        )
    })?;
    result.insert("files", files);
    Ok(result.into())
}

async fn exists(services: &Services, mut arguments: Arguments) -> Result<Value, ApiError> {
    let path = arguments.text("path")?;
    arguments.no_session()?;
    let exists = services.files.exists(&path).await?;
    let mut result = done(&path);
    result.insert("exists", exists);
    Ok(result.into())
}

fn done(path: &str) -> Object {
    object([
        ("success", true.into()),
        ("path", path.into()),
        ("timestamp", now()),
    ])
}

/// A size as a number; a double holds all that files have.
#[allow(clippy::cast_precision_loss, reason = "exact up to 8 PiB")]
pub(super) fn size(bytes: u64) -> Value {
    Value::Number(bytes as f64)
}

fn decode(text: &str) -> Result<Bytes, ApiError> {
    BASE64.decode(text).map(Bytes::from).map_err(|error| {
        invalid(
            "content",
            format!("content is not base64: {error}; use A-Z a-z 0-9 + / = alone"),
        )
    })
}
