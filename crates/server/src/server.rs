//! Putting it together and taking it apart.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hutch_drivers::{
    DirectoryVolumes, Driver, DriverError, NativeDriver, NativeOptions, UnavailableDriver,
    VolumeStore,
};
use hutch_protocol::Generation;
use hutch_sandboxes::{Sandboxes, Settings};
use hutch_snapshots::LocalStore;
use hutch_streams::{Expect, RecordId, Store, StoreError, Transaction};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::adapters::{DriverMachines, LocalWorkspaces, StreamJournal};
use crate::data_dir::{AdminKey, DataDir};
use crate::housekeeping;
use crate::http::{self, Doors};
use crate::keys::Keys;
use crate::projects::Projects;
use crate::rpc::World;
use crate::{Options, ServeError};

/// A running server. Dropping it stops serving at once; sandboxes run on.
pub struct Server {
    address: SocketAddr,
    stop: CancellationToken,
    serving: AbortOnDropHandle<()>,
    housekeeping: AbortOnDropHandle<()>,
    world: Arc<World>,
    obstacle: Option<String>,
}

impl Server {
    /// Opens the data directory, takes over running sandboxes and serves.
    ///
    /// # Errors
    /// [`ServeError`], each with the way out.
    pub async fn start(options: Options) -> Result<Self, ServeError> {
        Self::start_on(options, None).await
    }

    /// As [`Server::start`], on another driver than the options say.
    pub(crate) async fn start_on(
        options: Options,
        given: Option<Arc<dyn Driver>>,
    ) -> Result<Self, ServeError> {
        let (data_dir, key, store, snapshots) = open(&options).await?;
        let generation = next_generation(&store).await?;
        let projects = Projects::open(store.clone()).await?;
        let keys = Keys::open(key, store.clone()).await?;
        let (driver, obstacle) = match given {
            Some(driver) => (driver, None),
            None => driver(&options, data_dir.root(), generation).await,
        };
        let volumes =
            DirectoryVolumes::open(data_dir.root()).and_then(DirectoryVolumes::with_blanks);
        let volumes: Arc<dyn VolumeStore> =
            Arc::new(volumes.map_err(|error| ServeError::Volumes(error.to_string()))?);
        let workspaces = LocalWorkspaces::new(volumes, snapshots, options.snapshot_life);
        let journal = Arc::new(StreamJournal::new(store.clone()));
        let machines = Arc::new(DriverMachines::new(driver));
        let sandboxes = Sandboxes::new(
            journal,
            machines,
            Arc::new(workspaces.clone()),
            settings(&options),
        );
        sandboxes.recover().await?;
        sweep(&sandboxes, &workspaces).await;

        let listener = TcpListener::bind(options.listen).await;
        let refused = |cause| ServeError::Listen {
            address: options.listen,
            cause,
        };
        let listener = listener.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let world = Arc::new(World {
            sandboxes,
            projects,
            store,
            keys,
        });
        let housekeeping = AbortOnDropHandle::new(tokio::spawn(housekeeping::daily(workspaces)));
        let stop = CancellationToken::new();
        let doors = Doors::new(
            Arc::clone(&world),
            &options,
            obstacle.is_none(),
            stop.clone(),
        );
        let serving =
            AbortOnDropHandle::new(tokio::spawn(http::serve(listener, doors, stop.clone())));
        Ok(Self {
            address,
            stop,
            serving,
            housekeeping,
            world,
            obstacle,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Why sandboxes cannot start here, if they cannot.
    #[must_use]
    pub fn obstacle(&self) -> Option<&str> {
        self.obstacle.as_deref()
    }

    /// Ends every connection and what serves them. Sandboxes run on.
    pub async fn stop(self) {
        self.stop.cancel();
        let _ = self.serving.await;
        self.housekeeping.abort();
        let _ = self.housekeeping.await;
        self.world.sandboxes.shut_down().await;
        self.world.store.clone().close().await;
    }
}

/// Opens what is on disk; on a thread that may wait for it.
async fn open(options: &Options) -> Result<(DataDir, AdminKey, Store, LocalStore), ServeError> {
    let root = options.data_dir.clone();
    let of_snapshots = hutch_snapshots::Settings {
        ttl: options.snapshot_life,
        ..hutch_snapshots::Settings::default()
    };
    let opening = move || {
        let data_dir = DataDir::open(&root)?;
        // First the store, whose lock keeps a second server out.
        let store = Store::open(data_dir.root())?;
        let key = AdminKey::load_or_make(data_dir.root())?;
        let snapshots = LocalStore::open_with(&data_dir.snapshots(), of_snapshots)?;
        Ok((data_dir, key, store, snapshots))
    };
    let opened = tokio::task::spawn_blocking(opening).await;
    opened.map_err(|error| ServeError::Volumes(error.to_string()))?
}

fn settings(options: &Options) -> Settings {
    let mut settings = Settings::default();
    for (size, most) in &options.max_instances {
        settings.max_instances = settings.max_instances.with(*size, *most);
    }
    settings
}

/// Counts this server; the spawner obeys only the newest.
async fn next_generation(store: &Store) -> Result<Generation, StoreError> {
    let id = RecordId::deployment("server", "generation");
    let known = store.record(&id).await?;
    let last = known
        .and_then(|record| record.json["generation"].as_u64())
        .unwrap_or(0);
    let next = Generation(last).next();
    let write = Transaction::new().write(id, 1, json!({ "generation": next }), Expect::Any);
    store.commit(write).await?;
    Ok(next)
}

/// The native driver, or one that says why there is none: reads work anyway.
async fn driver(
    options: &Options,
    root: &Path,
    generation: Generation,
) -> (Arc<dyn Driver>, Option<String>) {
    let unavailable = |reason: String| {
        let driver = UnavailableDriver::new(reason.clone(), NativeDriver::detect());
        (Arc::new(driver) as Arc<dyn Driver>, Some(reason))
    };
    let sandboxd = match sandboxd(options) {
        Ok(sandboxd) => sandboxd,
        Err(reason) => return unavailable(reason),
    };
    let mut native = NativeOptions::new(root, sandboxd, generation);
    native.cpu = options.cpu;
    match NativeDriver::connect_or_start(native).await {
        Ok(driver) => (Arc::new(driver), None),
        Err(DriverError::Unavailable(reason)) => unavailable(reason),
        Err(error) => unavailable(error.to_string()),
    }
}

fn sandboxd(options: &Options) -> Result<PathBuf, String> {
    if let Some(path) = &options.sandboxd {
        return if path.is_file() {
            Ok(path.clone())
        } else {
            Err(format!(
                "sandboxd is not at {}; name the file with --sandboxd",
                path.display()
            ))
        };
    }
    let program =
        std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let beside = program.with_file_name("sandboxd");
    if beside.is_file() {
        Ok(beside)
    } else {
        Err(format!(
            "sandboxd is not at {}; install it beside hutch",
            beside.display()
        ))
    }
}

/// Drops what a death left between two steps. Failing costs space, not
/// sandboxes.
async fn sweep(sandboxes: &Sandboxes, workspaces: &LocalWorkspaces) {
    let records = match sandboxes.records().await {
        Ok(records) => records,
        Err(error) => return tracing::warn!(%error, "nothing was swept"),
    };
    let destroyed = records
        .iter()
        .filter(|record| record.destroyed_at.is_some());
    let destroyed: Vec<_> = destroyed.map(|record| record.key.clone()).collect();
    if let Err(error) = workspaces.sweep(records).await {
        tracing::warn!(%error, "volumes and snapshots were not swept");
    }
    for key in destroyed {
        sandboxes.forget(key).await;
    }
}
