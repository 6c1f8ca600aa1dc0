//! A proxy that runs until the end of a test.

use crate::client::ask;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use umbel_cache::proxy::{Options, Proxy};
use umbel_cache::store::{self, Store};

/// A running proxy.
pub struct Running {
    pub address: SocketAddr,
    pub status_address: SocketAddr,
    pub lines: Arc<Mutex<Vec<String>>>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub fn start(folder: &Path, options: Options) -> Running {
        Running::at("127.0.0.1:0".parse().unwrap(), folder, options)
    }

    pub fn at(address: SocketAddr, folder: &Path, options: Options) -> Running {
        Running::open(address, folder, &store::Options::default(), options)
    }

    /// Starts a proxy with these options for the store.
    pub fn with(folder: &Path, about: &store::Options, options: Options) -> Running {
        Running::open("127.0.0.1:0".parse().unwrap(), folder, about, options)
    }

    fn open(address: SocketAddr, folder: &Path, about: &store::Options, mut options: Options) -> Running {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&lines);
        options.log = Arc::new(move |line: &str| heard.lock().unwrap().push(line.to_owned()));
        let store = Store::open(folder, about).unwrap();
        let (end, until) = oneshot::channel();
        let (told, address_of) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let proxy = Proxy::bind(address, store, options).await.unwrap();
                told.send((proxy.address(), proxy.status_address().unwrap())).unwrap();
                proxy.run(async { drop(until.await) }).await;
            });
            runtime.shutdown_timeout(Duration::from_secs(5));
        });
        let (address, status_address) = address_of.recv().unwrap();
        Running { address, status_address, lines, end: Some(end), thread: Some(thread) }
    }

    /// Returns the statistics of the proxy.
    pub fn stats(&self) -> Value {
        serde_json::from_slice(&ask(self.status_address, "GET", "/umbel/stats", &[]).body).unwrap()
    }

    pub fn count(&self, name: &str) -> u64 {
        self.stats()[name].as_u64().unwrap_or_else(|| panic!("{name} is not counted"))
    }

    /// Waits until the summary of the first peer has this number of keys.
    pub fn wait_for_documents(&self, count: u64) {
        self.wait(|stats| stats["peers"][0]["documents"] == count);
    }

    pub fn wait(&self, until: impl Fn(&Value) -> bool) {
        let start = Instant::now();
        while !until(&self.stats()) {
            assert!(start.elapsed() < Duration::from_secs(20), "{}", self.stats());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn log(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the proxy has panicked");
        }
    }
}
