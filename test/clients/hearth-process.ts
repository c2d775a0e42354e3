import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/network/free-port.ts';
import { builtHearth } from '../support/servers/built-hearth.ts';

const unlimited = { per_second: 1e9, burst_count: 1e9 };

/** Rate limits of every kind that a client can meet, set so high that none applies. */
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
 * A Hearth in its own process, started by its command line from a configuration file in its own directory, as
 * by an operator. It can be stopped, killed and started again on the same data.
 */
export class HearthProcess {
  readonly url: string;
  /** Holds the configuration, the log and, unless configured otherwise, the database and the keys. */
  readonly directory: string;
  #child: ChildProcess | undefined;
  readonly #killChild = () => void this.#child?.kill('SIGKILL');

  readonly #program: string;

  private constructor(url: string, directory: string, program: string) {
    this.#program = program;
    this.url = url;
    this.directory = directory;
    process.once('exit', this.#killChild);
  }

  /**
   * Makes the directory and the configuration, and does not start the process.
   * @param settings options of the configuration file that are added or replaced; a function receives the directory and
   * the port of `url`
   * @param program path of the script of the command line; `builtHearth` by default
   */
  static async create(
    settings: Settings | ((directory: string, port: number) => Settings) = {},
    program?: string,
  ): Promise<HearthProcess> {
    const directory = await mkdtemp(join(tmpdir(), 'hearth-'));
    const port = await freePort();
    const added = typeof settings === 'function' ? settings(directory, port) : settings;
    const merged = { ...configuration(directory, port), ...added };
    // JSON is YAML.
    await writeFile(join(directory, 'homeserver.yaml'), JSON.stringify(merged, undefined, 2));
    return new HearthProcess(`http://127.0.0.1:${port}`, directory, program ?? (await builtHearth()));
  }

  /** Id of the process while it runs. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /**
   * Starts the process and waits for its first response.
   * @returns milliseconds from the start to that response
   * @throws Error with the end of the log when the process ends or does not respond within `timeout`
   * milliseconds
   */
  async start(timeout = 180_000): Promise<number> {
    const log = openSync(join(this.directory, 'hearth.log'), 'a');
    const startedAt = performance.now();
    const child = spawn(
      process.execPath,
      [this.#program, 'serve', '-c', join(this.directory, 'homeserver.yaml')],
      {
        cwd: this.directory,
        stdio: ['ignore', log, log],
      },
    );
    closeSync(log);
    this.#child = child;
    while (!(await answers(`${this.url}/_matrix/client/versions`))) {
      const ended = child.exitCode !== null || child.signalCode !== null;
      if (!ended && performance.now() - startedAt < timeout) {
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

  /**
   * Signals the process to stop and waits until it has ended; kills it after `timeout` milliseconds.
   * @returns its exit code, `null` when it was killed or did not run
   */
  async stop(timeout = 60_000): Promise<number | null> {
    const child = this.#child;
    if (!child) return null;
    const killTimer = setTimeout(() => child.kill('SIGKILL'), timeout);
    await this.#end('SIGTERM');
    clearTimeout(killTimer);
    return child.exitCode;
  }

  /** Waits until the process has ended by itself. @returns its exit code, `null` when a signal ended it */
  async ended(): Promise<number | null> {
    const child = this.#child;
    if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    return child?.exitCode ?? null;
  }

  /** `kill -9`: interrupts the process at any point. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Stops the process if it runs, and removes the directory. */
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

/** Returns the options that a `HearthProcess` has unless its settings replace them. */
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
