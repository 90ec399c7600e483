//! The host functions for calls, timers, text and the script's end.

use super::{
    engine::Shared,
    outcome::{Outcome, ScriptError},
    settle::Settled,
    text, value,
};
use crate::output;
use base64::{Engine, prelude::BASE64_STANDARD};
use rquickjs::{Ctx, Exception, Function, Object, Result};
use std::time::Instant;

/// Throws what a table refused as a TypeError.
pub fn refused<'js, T>(ctx: &Ctx<'js>, result: std::result::Result<T, String>) -> Result<T> {
    result.map_err(|reason| Exception::throw_type(ctx, &reason))
}

/// Puts the functions onto the host object.
pub fn install<'js>(ctx: &Ctx<'js>, host: &Object<'js>, shared: &Shared) -> Result<()> {
    calls(ctx, host, shared)?;
    functions(ctx, host, shared)?;
    timers(ctx, host, shared)?;
    texts(ctx, host)?;
    end(ctx, host, shared)
}

fn calls<'js>(ctx: &Ctx<'js>, host: &Object<'js>, shared: &Shared) -> Result<()> {
    let at = shared.clone();
    let call = move |ctx: Ctx<'js>, target: u32, path: String, args: String| {
        let tables = &mut at.state().tables;
        let made = (|| {
            let path = value::path_from(value::json(&path)?)?;
            let args = value::decode_args(tables, &args)?;
            let pending = tables.stub(target)?.call(path, args);
            Ok(tables.add_result(pending))
        })();
        refused(&ctx, made)
    };
    host.set("call", Function::new(ctx.clone(), call)?)?;
    let at = shared.clone();
    let get = move |ctx: Ctx<'js>, target: u32, path: String| {
        let tables = &mut at.state().tables;
        let made = (|| {
            let path = value::path_from(value::json(&path)?)?;
            let pending = tables.stub(target)?.get(path);
            Ok(tables.add_result(pending))
        })();
        refused(&ctx, made)
    };
    host.set("get", Function::new(ctx.clone(), get)?)?;
    let at = shared.clone();
    let pull = move |ctx: Ctx<'js>, node: u32, ticket: u32| {
        let state = &mut *at.state();
        let pending = refused(&ctx, state.tables.take_result(node))?;
        let result = async move { Settled::from(pending.await) };
        state.operations.start(&mut state.tables, ticket, result);
        Ok::<_, rquickjs::Error>(())
    };
    host.set("pull", Function::new(ctx.clone(), pull)?)?;
    let at = shared.clone();
    let release = move |node: u32| at.state().tables.release(node);
    host.set("release", Function::new(ctx.clone(), release)?)
}

fn functions<'js>(ctx: &Ctx<'js>, host: &Object<'js>, shared: &Shared) -> Result<()> {
    let at = shared.clone();
    let reply = move |ctx: Ctx<'js>, number: u32, good: bool, data: String| {
        let tables = &mut at.state().tables;
        let answer = if good {
            Ok(refused(&ctx, value::decode_text(tables, &data))?)
        } else {
            Err(value::decode_error(tables, &data))
        };
        if let Some(reply) = tables.take_reply(number) {
            // The caller may have given up.
            let _ = reply.send(answer);
        }
        Ok::<_, rquickjs::Error>(())
    };
    host.set("reply", Function::new(ctx.clone(), reply)?)
}

fn timers<'js>(ctx: &Ctx<'js>, host: &Object<'js>, shared: &Shared) -> Result<()> {
    let at = shared.clone();
    let set = move |id: u32, millis: f64| {
        at.state().tables.timers.set(id, millis, Instant::now());
    };
    host.set("timer", Function::new(ctx.clone(), set)?)?;
    let at = shared.clone();
    let clear = move |id: u32| at.state().tables.timers.clear(id);
    host.set("clearTimer", Function::new(ctx.clone(), clear)?)
}

fn texts<'js>(ctx: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
    let print = |text: String| output::note(&text);
    host.set("print", Function::new(ctx.clone(), print)?)?;
    let encode = |text: String| BASE64_STANDARD.encode(text);
    host.set("utf8Encode", Function::new(ctx.clone(), encode)?)?;
    let decode = |ctx: Ctx<'js>, data: String, fatal: bool, more: bool| {
        let bytes = BASE64_STANDARD
            .decode(data)
            .map_err(|error| error.to_string());
        let bytes = refused(&ctx, bytes)?;
        match text::decode(&bytes, fatal, more) {
            Ok(decoded) => Ok(serde_json::json!(decoded).to_string()),
            Err(reason) => Err(Exception::throw_type(&ctx, reason)),
        }
    };
    host.set("utf8Decode", Function::new(ctx.clone(), decode)?)
}

fn end<'js>(ctx: &Ctx<'js>, host: &Object<'js>, shared: &Shared) -> Result<()> {
    let at = shared.clone();
    let finish = move |good: bool, data: String| {
        let state = &mut *at.state();
        state.outcome = Some(if good {
            Outcome::Value {
                json: data,
                forgotten: state.tables.forgotten(),
                uncaught: state.rejections.uncaught(),
            }
        } else {
            Outcome::Threw(Box::new(ScriptError::from_json(&data)))
        });
    };
    host.set("finish", Function::new(ctx.clone(), finish)?)
}
