//! The environment of commands.

use hutch_protocol::{EnvMap, EnvPatch, env};
use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::sync::{Mutex, PoisonError};

/// What every command has unless something says otherwise.
const DEFAULTS: [(&str, &str); 6] = [
    ("HOME", "/root"),
    ("LANG", UTF8),
    ("LOGNAME", "root"),
    (
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ),
    ("SHELL", "/bin/bash"),
    ("USER", "root"),
];
const UTF8: &str = "C.UTF-8";
/// Variables that are for this daemon alone.
const OWN_PREFIX: &str = "SANDBOXD_";

/// The image's environment and, over it, the durable one of the sandbox.
#[derive(Debug, Default)]
pub struct Environment {
    image: EnvMap,
    durable: Mutex<EnvPatch>,
}

impl Environment {
    /// The environment with `image` below the durable one.
    #[must_use]
    pub fn new(image: EnvMap) -> Self {
        Self {
            image,
            durable: Mutex::default(),
        }
    }

    /// This process's own environment as the image's, less what only this daemon needs.
    #[must_use]
    pub fn inherited() -> Self {
        let text = |os: std::ffi::OsString| String::from_utf8(os.into_vec()).ok();
        let image = std::env::vars_os()
            .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
            .filter(|(name, _)| !name.starts_with(OWN_PREFIX))
            .collect();
        Self::new(image)
    }

    /// Replaces the durable environment as a whole; `None` unsets a variable of the image.
    pub fn replace(&self, durable: EnvPatch) {
        *self.durable.lock().unwrap_or_else(PoisonError::into_inner) = durable;
    }

    /// The environment of one command, as `execve` takes it.
    #[must_use]
    pub fn of_call(&self, call: &EnvPatch) -> Vec<CString> {
        let mut map: EnvMap = DEFAULTS
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        let mut asked = self.image.clone();
        env::apply(
            &mut asked,
            &self.durable.lock().unwrap_or_else(PoisonError::into_inner),
        );
        env::apply(&mut asked, call);
        // LC_ALL overrules every other choice of language, so it is set only if there is none.
        if !asked
            .keys()
            .any(|name| name == "LANG" || name.starts_with("LC_"))
            || self.plain(&asked)
        {
            map.insert("LC_ALL".into(), UTF8.into());
        }
        map.extend(asked);
        let unset = |name: &String| call.get(name) == Some(&None);
        map.retain(|name, _| !unset(name));
        map.into_iter()
            .filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok())
            .collect()
    }

    /// Whether the only language asked for is the default one.
    fn plain(&self, asked: &EnvMap) -> bool {
        asked
            .iter()
            .filter(|(name, _)| *name == "LANG" || name.starts_with("LC_"))
            .all(|(_, value)| value == UTF8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(environment: &Environment, call: &[(&str, Option<&str>)]) -> EnvMap {
        let call = call
            .iter()
            .map(|(n, v)| ((*n).into(), v.map(Into::into)))
            .collect();
        let entries = environment.of_call(&call).into_iter();
        entries
            .filter_map(|entry| {
                let text = entry.into_string().ok()?;
                text.split_once('=')
                    .map(|(name, value)| (name.into(), value.into()))
            })
            .collect()
    }

    #[test]
    fn a_call_overrules_the_sandbox_and_the_sandbox_the_image() {
        let environment =
            Environment::new([("A".into(), "image".into()), ("B".into(), "image".into())].into());
        environment.replace(
            [
                ("B".into(), Some("sandbox".into())),
                ("C".into(), Some("=\n".into())),
            ]
            .into(),
        );
        let env = of(&environment, &[("C", Some("call")), ("HOME", None)]);
        let value = |name: &str| env.get(name).map(String::as_str);
        assert_eq!(
            (value("A"), value("B"), value("C")),
            (Some("image"), Some("sandbox"), Some("call"))
        );
        assert_eq!(value("HOME"), None);
        environment.replace([("A".into(), None)].into());
        let env = of(&environment, &[]);
        assert_eq!((env.get("A"), env.get("C")), (None, None));
    }

    #[test]
    fn the_locale_is_utf8_unless_one_is_asked_for() {
        let environment = Environment::default();
        assert_eq!(
            of(&environment, &[]).get("LC_ALL").map(String::as_str),
            Some("C.UTF-8")
        );
        let german = of(&environment, &[("LANG", Some("de_DE.UTF-8"))]);
        assert_eq!(
            (german.get("LC_ALL"), german.get("LANG").map(String::as_str)),
            (None, Some("de_DE.UTF-8"))
        );
    }
}
