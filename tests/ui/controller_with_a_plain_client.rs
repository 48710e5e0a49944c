//! A controller takes nothing but a fenced client.

use std::sync::Arc;

use orchestratord::args::Config;
use orchestratord::clock::Clock;
use orchestratord::controllers::materialize;
use orchestratord::controllers::materialize::NeedsUpdate;

async fn start(client: kube::Client, config: Arc<Config>, needs_update: NeedsUpdate) {
    materialize::run(client, config, Clock::boottime(), needs_update, None).await;
}

fn main() {}
