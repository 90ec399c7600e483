//! Values there and back.

use super::*;
use serde_json::json;

#[tokio::test]
async fn every_kind_arrives_as_itself() {
    let source = "const kinds = [undefined, null, true, 1.5, NaN, -Infinity, 's', 12n, new Date(0),
        new Uint8Array([1]), new ArrayBuffer(2), [], {}, new Error('x'), () => 1, itx];
      const out = [];
      for (const kind of kinds) out.push(await itx.kind(kind));
      return out.join(' ');";
    assert_eq!(
        value(source).await,
        json!(
            "undefined null bool number nan infinite string bigint date bytes bytes array object error stub stub"
        )
    );
}

#[tokio::test]
async fn every_kind_comes_back_as_itself() {
    let source = "
      const date = await itx.echo(new Date(5)), bytes = await itx.echo(new Uint8Array([0, 255])), error = await itx.echo(new TypeError('x'));
      return [date instanceof Date && date.getTime(), bytes instanceof Uint8Array && [...bytes], error instanceof TypeError,
        Number.isNaN(await itx.echo(NaN)), (await itx.echo(-Infinity)) === -Infinity, (await itx.echo(undefined)) === undefined,
        typeof await itx.echo(2n ** 70n), await itx.echo([[1], {a: ['u']}]), await itx.echo('€\\ud83d\\ude00')];";
    assert_eq!(
        value(source).await,
        json!([5, [0, 255], true, true, true, true, "bigint", [[1], {"a": ["u"]}], "€😀"])
    );
}

#[tokio::test]
async fn lists_that_look_like_tags_stay_lists() {
    let source = "return itx.echo([['b', 'AA=='], ['u'], ['s', 1], [[]]])";
    assert_eq!(
        value(source).await,
        json!([["b", "AA=="], ["u"], ["s", 1], [[]]])
    );
}

#[tokio::test]
async fn what_cannot_be_sent_is_named() {
    for (source, named) in [
        ("const a = {}; a.a = a; itx.echo(a)", "nested too deeply"),
        ("itx.echo(Symbol('x'))", "symbol"),
        ("itx.echo(new Map())", "class Map"),
        ("itx.echo(Promise.resolve(1))", "await it first"),
    ] {
        let error = error(source).await;
        assert!(error.message.contains(named), "{source}: {}", error.message);
    }
}

#[tokio::test]
async fn lone_surrogates_become_replacement_characters() {
    assert_eq!(
        value("return itx.echo('a\\ud800b')").await,
        json!("a\u{fffd}b")
    );
}

#[tokio::test]
async fn printed_values_have_a_json_form() {
    let source = "return { bytes: new Uint8Array([1, 2]), big: 10n, nan: NaN, date: new Date(0), error: new Error('x'), none: undefined, map: new Map([[1, 2]]), fn: () => 1, remote: itx }";
    assert_eq!(
        value(source).await,
        json!({"bytes": {"base64": "AQI="}, "big": "10", "nan": null, "date": "1970-01-01T00:00:00.000Z",
            "error": {"name": "Error", "message": "x"}, "map": [[1, 2]], "fn": "[function]", "remote": "[remote object]"})
    );
}

#[tokio::test]
async fn no_value_is_null() {
    assert_eq!(value("").await, json!(null));
}

#[tokio::test]
async fn large_bytes_cross_whole() {
    let source =
        "const bytes = new Uint8Array(8 << 20).fill(7); const back = await itx.echo(bytes);
      return [back.length, back.every((b) => b === 7)]";
    assert_eq!(value(source).await, json!([8 << 20, true]));
}
