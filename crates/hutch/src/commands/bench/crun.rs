//! `crun run` of `true` on the host's `/usr`.

use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

/// crun refuses a machine with both versions of cgroups mounted. Inside a mount
/// namespace of its own the second can be hidden, and one shell in it starts
/// every container. It answers each line with crun's exit code.
const SHELL: &str = "umount /sys/fs/cgroup/unified 2>/dev/null
while read -r id; do crun run \"$id\" </dev/null >/dev/null 2>error; echo $?; done";

/// A bundle and the shell that runs it.
pub struct Crun {
    bundle: PathBuf,
    shell: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    count: u32,
}

impl Crun {
    /// Makes the bundle and tries it; `Err` says why it cannot be measured.
    pub fn start() -> Result<Self, String> {
        let bundle = super::own_server::scratch("crun").map_err(|error| error.to_string())?;
        match Self::in_bundle(bundle.clone()) {
            Ok(crun) => Ok(crun),
            Err(reason) => {
                remove(&bundle);
                Err(reason)
            }
        }
    }

    fn in_bundle(bundle: PathBuf) -> Result<Self, String> {
        make_bundle(&bundle)?;
        let mut shell = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", SHELL])
            .current_dir(&bundle)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("unshare: {error}"))?;
        let (input, output) = (shell.stdin.take(), shell.stdout.take());
        let Some(output) = output else {
            return Err("the shell has no output".to_owned());
        };
        let mut crun = Self {
            bundle,
            shell,
            input,
            output: BufReader::new(output),
            count: 0,
        };
        crun.run()?;
        Ok(crun)
    }

    /// Runs one container to its end.
    pub fn run(&mut self) -> Result<Duration, String> {
        self.count += 1;
        let id = format!("hutch-bench-{}-{}", std::process::id(), self.count);
        let begun = Instant::now();
        let input = self.input.as_mut().ok_or("the shell is gone")?;
        writeln!(input, "{id}").map_err(|error| error.to_string())?;
        let mut answer = String::new();
        let read = self.output.read_line(&mut answer);
        let time = begun.elapsed();
        match (read, answer.trim()) {
            (Ok(1..), "0") => Ok(time),
            (_, code) => {
                let said = std::fs::read_to_string(self.bundle.join("error")).unwrap_or_default();
                Err(format!("crun answered {code}: {}", said.trim()))
            }
        }
    }
}

impl Drop for Crun {
    fn drop(&mut self) {
        // The shell ends with its input.
        drop(self.input.take());
        let _ = self.shell.wait();
        remove(&self.bundle);
    }
}

fn remove(bundle: &Path) {
    // A scratch directory that stays is no reason to fail.
    let _ = std::fs::remove_dir_all(bundle);
}

/// Writes crun's own default configuration, with our root and command.
fn make_bundle(bundle: &Path) -> Result<(), String> {
    let spec = Command::new("crun")
        .arg("spec")
        .current_dir(bundle)
        .output();
    let spec = spec.map_err(|error| format!("crun: {error}"))?;
    if !spec.status.success() {
        return Err(String::from_utf8_lossy(&spec.stderr).trim().to_owned());
    }
    let path = bundle.join("config.json");
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let mut config: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    config["process"]["terminal"] = json!(false);
    config["process"]["args"] = json!(["/bin/true"]);
    config["root"] = json!({"path": "rootfs", "readonly": true});
    let usr = json!({"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]});
    if let Some(mounts) = config["mounts"].as_array_mut() {
        mounts.push(usr);
    }
    std::fs::write(&path, config.to_string()).map_err(|error| error.to_string())?;
    root(&bundle.join("rootfs")).map_err(|error| error.to_string())
}

fn root(root: &Path) -> std::io::Result<()> {
    for dir in ["usr", "proc", "dev", "sys"] {
        std::fs::create_dir_all(root.join(dir))?;
    }
    for link in ["bin", "sbin", "lib", "lib64"] {
        symlink(format!("usr/{link}"), root.join(link))?;
    }
    Ok(())
}
