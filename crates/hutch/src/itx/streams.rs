//! The host functions for streams.

use super::{engine::Shared, host_functions::refused, settle::Settled, value};
use capnweb::{Canceled, ErrorValue, Value};
use rquickjs::{Ctx, Function, Object, Result};

/// Bytes of one of the script's streams that may wait for the server.
const WINDOW: usize = 1 << 20;

/// Puts the functions onto the host object.
pub fn install<'js>(ctx: &Ctx<'js>, host: &Object<'js>, shared: &Shared) -> Result<()> {
    reading(ctx, host, shared)?;
    writing(ctx, host, shared)?;
    sinks(ctx, host, shared)
}

fn ended() -> Settled {
    Settled::Error(ErrorValue::type_error("the stream has ended"))
}

fn reading<'js>(ctx: &Ctx<'js>, host: &Object<'js>, shared: &Shared) -> Result<()> {
    let at = shared.clone();
    let read = move |ctx: Ctx<'js>, id: u32, ticket: u32| {
        let state = &mut *at.state();
        let reader = refused(&ctx, state.tables.reader(id))?;
        let next = async move {
            let mut reader = reader.lock().await;
            let Some(stream) = reader.as_mut() else {
                return Settled::End;
            };
            match stream.next().await {
                Some(result) => result.into(),
                None => {
                    *reader = None;
                    Settled::End
                }
            }
        };
        state.operations.start(&mut state.tables, ticket, next);
        Ok::<_, rquickjs::Error>(())
    };
    host.set("read", Function::new(ctx.clone(), read)?)?;
    let at = shared.clone();
    let cancel = move |id: u32, reason: String| {
        let tables = &mut at.state().tables;
        let reason = value::decode_error(tables, &reason);
        // A read under way keeps the stream; it is canceled when that ends.
        if let Some(reader) = tables.remove_reader(id)
            && let Ok(mut reader) = reader.try_lock()
            && let Some(stream) = reader.take()
        {
            stream.cancel(reason);
        }
    };
    host.set("cancel", Function::new(ctx.clone(), cancel)?)
}

fn writing<'js>(ctx: &Ctx<'js>, host: &Object<'js>, shared: &Shared) -> Result<()> {
    let at = shared.clone();
    let pipe = move || at.state().tables.pipe(WINDOW);
    host.set("pipe", Function::new(ctx.clone(), pipe)?)?;
    let at = shared.clone();
    let write = move |ctx: Ctx<'js>, id: u32, data: String, ticket: u32| {
        let state = &mut *at.state();
        let writer = refused(&ctx, state.tables.writer(id))?;
        let chunk = refused(&ctx, value::decode_text(&mut state.tables, &data))?;
        let written = async move {
            match writer.lock().await.as_mut() {
                Some(writer) => match writer.write(chunk).await {
                    Ok(()) => Settled::Value(Value::Undefined),
                    Err(Canceled(reason)) => Settled::Error(reason),
                },
                None => ended(),
            }
        };
        state.operations.start(&mut state.tables, ticket, written);
        Ok::<_, rquickjs::Error>(())
    };
    host.set("write", Function::new(ctx.clone(), write)?)?;
    let at = shared.clone();
    let close = move |id: u32| {
        let writer = at.state().tables.remove_writer(id);
        if let Some(writer) = writer.and_then(|writer| writer.try_lock().ok()?.take()) {
            writer.close();
        }
    };
    host.set("close", Function::new(ctx.clone(), close)?)?;
    let at = shared.clone();
    let abort = move |id: u32, reason: String| {
        let tables = &mut at.state().tables;
        let reason = value::decode_error(tables, &reason);
        let writer = tables.remove_writer(id);
        if let Some(writer) = writer.and_then(|writer| writer.try_lock().ok()?.take()) {
            writer.abort(reason);
        }
    };
    host.set("abort", Function::new(ctx.clone(), abort)?)
}

fn sinks<'js>(ctx: &Ctx<'js>, host: &Object<'js>, shared: &Shared) -> Result<()> {
    let at = shared.clone();
    let pipe = move || {
        let (sink, reader) = at.state().tables.sink_pipe(WINDOW);
        serde_json::json!({"sink": sink, "reader": reader}).to_string()
    };
    host.set("sinkPipe", Function::new(ctx.clone(), pipe)?)?;
    let at = shared.clone();
    let write = move |ctx: Ctx<'js>, id: u32, data: String, ticket: u32| {
        let state = &mut *at.state();
        let sink = refused(&ctx, state.tables.sink(id))?;
        let chunk = refused(&ctx, value::decode_text(&mut state.tables, &data))?;
        let written = async move {
            match sink.lock().await.as_mut() {
                Some(sink) => sink.write(chunk).await.map(|()| Value::Undefined).into(),
                None => ended(),
            }
        };
        state.operations.start(&mut state.tables, ticket, written);
        Ok::<_, rquickjs::Error>(())
    };
    host.set("sinkWrite", Function::new(ctx.clone(), write)?)?;
    let at = shared.clone();
    let close = move |id: u32, ticket: u32| {
        let state = &mut *at.state();
        let sink = state.tables.remove_sink(id);
        let closed = async move {
            let sink = match sink {
                Some(sink) => sink.lock().await.take(),
                None => None,
            };
            match sink {
                Some(sink) => sink.close().await.map(|()| Value::Undefined).into(),
                None => ended(),
            }
        };
        state.operations.start(&mut state.tables, ticket, closed);
    };
    host.set("sinkClose", Function::new(ctx.clone(), close)?)?;
    let at = shared.clone();
    let abort = move |id: u32, reason: String| {
        let state = &mut *at.state();
        let reason = value::decode_error(&mut state.tables, &reason);
        let sink = state.tables.remove_sink(id);
        if let Some(sink) = sink.and_then(|sink| sink.try_lock().ok()?.take()) {
            state
                .operations
                .detach(async move { sink.abort(reason).await });
        }
    };
    host.set("sinkAbort", Function::new(ctx.clone(), abort)?)
}
