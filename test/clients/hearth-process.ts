import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const commandLine = fileURLToPath(new URL('../../bin/hearth.js', import.meta.url));
const unlimited = { per_second: 1e9, burst_count: 1e9 };

/** Rate limits of every kind that a client can meet, wide open. */
const noRateLimits = {
  rc_message: unlimited,
  rc_registration: unlimited,
  rc_login: { address: unlimited, account: unlimited, failed_attempts: unlimited },
  rc_admin_redaction: unlimited,
  rc_joins: { local: unlimited, remote: unlimited },
  rc_joins_per_room: unlimited,
  rc_invites: { per_room: unlimited, per_user: unlimited, per_issuer: unlimited },
  rc_room_creation: unlimited,
  rc_media_create: unlimited,
  rc_presence: { per_user: unlimited },
  rc_delayed_event_mgmt: unlimited,
};

type Settings = Readonly<Record<string, unknown>>;

/**
 * A Hearth in a process of its own, started through the command line from a configuration file in a directory of
 * its own, as an operator does it. It can be stopped, killed and started again on the same data.
 */
export class HearthProcess {
  readonly url: string;
  /** Holds the configuration, the log and, unless configured otherwise, the database and the keys. */
  readonly directory: string;
  #child: ChildProcess | undefined;
  readonly #killChild = () => void this.#child?.kill('SIGKILL');

  private constructor(url: string, directory: string) {
    this.url = url;
    this.directory = directory;
    process.once('exit', this.#killChild);
  }

  /**
   * Makes the directory and the configuration; `start` is left to the caller.
   * @param settings options of the configuration file that come in addition or instead; they may depend on the
   * directory and on the port of its `url`.
   */
  static async create(
    settings: Settings | ((directory: string, port: number) => Settings) = {},
  ): Promise<HearthProcess> {
    const directory = await mkdtemp(join(tmpdir(), 'hearth-'));
    const port = await freePort();
    const own = typeof settings === 'function' ? settings(directory, port) : settings;
    const settingsOfAll = { ...configuration(directory, port), ...own };
    // JSON is YAML.
    await writeFile(join(directory, 'homeserver.yaml'), JSON.stringify(settingsOfAll, undefined, 2));
    return new HearthProcess(`http://127.0.0.1:${port}`, directory);
  }

  /** Process id while it runs. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /**
   * Starts the process and waits for the first answer.
   * @returns milliseconds from the start to that answer.
   * @throws Error with the end of the log, when the process ends or does not answer in `patience` milliseconds.
   */
  async start(patience = 180_000): Promise<number> {
    const log = openSync(join(this.directory, 'hearth.log'), 'a');
    const startedAt = performance.now();
    const child = spawn(
      process.execPath,
      [commandLine, 'serve', '-c', join(this.directory, 'homeserver.yaml')],
      {
        cwd: this.directory,
        stdio: ['ignore', log, log],
      },
    );
    closeSync(log);
    this.#child = child;
    while (!(await answers(`${this.url}/_matrix/client/versions`))) {
      const ended = child.exitCode !== null || child.signalCode !== null;
      if (!ended && performance.now() - startedAt < patience) {
        await sleep(5);
        continue;
      }
      await this.kill();
      throw new Error(
        `Hearth ${ended ? 'ended' : 'does not answer'}; its log ends with\n${await this.#logEnd()}`,
      );
    }
    return performance.now() - startedAt;
  }

  /** Asks the process to end and waits until it has. @returns its exit code, `null` when it had to be killed. */
  async stop(patience = 60_000): Promise<number | null> {
    const child = this.#child;
    if (!child) return null;
    const impatience = setTimeout(() => child.kill('SIGKILL'), patience);
    await this.#end('SIGTERM');
    clearTimeout(impatience);
    return child.exitCode;
  }

  /** `kill -9`: whatever the process was doing is cut off. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Ends the process if it still runs and removes the directory. */
  async remove(): Promise<void> {
    await this.stop();
    process.off('exit', this.#killChild);
    await rm(this.directory, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill(signal);
    await exit;
  }

  async #logEnd(): Promise<string> {
    const log = await readFile(join(this.directory, 'hearth.log'), 'utf8');
    return log.split('\n').slice(-30).join('\n');
  }
}

/** What the tests and the bench let every Hearth have in common. */
function configuration(directory: string, port: number): Record<string, unknown> {
  return {
    server_name: 'hearth.test',
    public_baseurl: `http://127.0.0.1:${port}/`,
    signing_key_path: join(directory, 'signing.key'),
    media_store_path: join(directory, 'media'),
    report_stats: false,
    trusted_key_servers: [],
    listeners: [
      {
        port,
        type: 'http',
        tls: false,
        bind_addresses: ['127.0.0.1'],
        resources: [{ names: ['client', 'federation'], compress: false }],
      },
    ],
    database: { name: 'sqlite3', args: { database: join(directory, 'homeserver.db') } },
    enable_registration: true,
    enable_registration_without_verification: true,
    registration_shared_secret: registrationSecret,
    macaroon_secret_key: 'for macaroons',
    form_secret: 'for forms',
    bcrypt_rounds: 4,
    ...noRateLimits,
  };
}

/** The `registration_shared_secret` of every `HearthProcess`. */
export const registrationSecret = 'for registration';

/** Ports below those that the system gives to outgoing connections, which could take one while its server is down. */
const [firstPort, lastPort] = [20_000, 32_000];

/** A TCP port of the loopback address that nothing listens on. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(firstPort, lastPort);
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}

function answers(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, timeout: 2_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on('error', () => resolve(false));
    request.on('timeout', () => request.destroy());
  });
}
