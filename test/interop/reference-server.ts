import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from '../clients/hearth-process.ts';
import type { TestAuthority } from '../support/test-authority.ts';

const folder = process.env['HEARTH_REFERENCE_DIR'] ?? '/var/tmp/hearth-reference';
const root = join(folder, 'root');
const environment = ['-i', 'PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'LC_ALL=C.UTF-8', 'HOME=/root'];
const unlimited = '{per_second: 1000000000, burst_count: 1000000000}';
let instances = 0;

/** The host in Hearth's name; nobody but the reference server has to find it. */
export const hearthHost = 'hearth.localhost';

/** Installs the reference server; takes a minute or two the first time. */
async function install(): Promise<void> {
  if (existsSync(join(folder, 'ready'))) return;
  const setup = join(import.meta.dirname, 'reference', 'setup.sh');
  await promisify(execFile)(setup, { timeout: 600_000 });
}

/** The reference homeserver (Synapse from Debian's packages) in a process and folder of its own. */
export class ReferenceServer {
  /** The name that ids of its users end in. */
  readonly name: string;
  readonly url: string;
  /** Its folder, as it sees it and as we do. */
  readonly #inside: string;
  readonly #outside: string;
  #child: ChildProcess | undefined;

  private constructor(name: string, url: string, inside: string) {
    this.name = name;
    this.url = url;
    this.#inside = inside;
    this.#outside = join(root, inside);
    process.once('exit', () => this.#child?.kill('SIGKILL'));
  }

  /**
   * Makes an instance with an empty database; `start` is left to the caller.
   * @param extra YAML that is added to its configuration
   */
  static async create(authority: TestAuthority, extra = ''): Promise<ReferenceServer> {
    await install();
    const [port, tlsPort] = [await freePort(), await freePort()];
    const inside = `/srv/${process.pid}-${++instances}`;
    const server = new ReferenceServer(`localhost:${tlsPort}`, `http://127.0.0.1:${port}`, inside);
    server.#configure(authority, { port, tlsPort, extra });
    await promisify(execFile)('chroot', server.#command('--generate-keys'));
    return server;
  }

  /** Starts it and waits until it answers. */
  async start(): Promise<void> {
    const log = openSync(join(this.#outside, 'synapse.log'), 'a');
    const child = spawn('chroot', this.#command(), { stdio: ['ignore', log, log] });
    closeSync(log);
    this.#child = child;
    for (let waited = 0; !(await answers(`${this.url}/_matrix/client/versions`)); waited += 100) {
      if (child.exitCode !== null || waited > 120_000) throw new Error(`no answer; its log:\n${this.log()}`);
      await sleep(100);
    }
  }

  /** The end of its log. */
  log(lines = 40): string {
    return readFileSync(join(this.#outside, 'synapse.log'), 'utf8').split('\n').slice(-lines).join('\n');
  }

  stop(): Promise<void> {
    return this.#end('SIGTERM');
  }

  kill(): Promise<void> {
    return this.#end('SIGKILL');
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#outside, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill(signal);
    await exit;
  }

  #command(...more: string[]): string[] {
    const config = join(this.#inside, 'homeserver.yaml');
    const module = ['python3', '-m', 'synapse.app.homeserver', '-c', config];
    return [root, 'env', ...environment, ...module, ...more];
  }

  #configure(
    authority: TestAuthority,
    { port, tlsPort, extra }: { port: number; tlsPort: number; extra: string },
  ): void {
    const outside = (file: string) => join(this.#outside, file);
    const inside = (file: string) => JSON.stringify(join(this.#inside, file));
    mkdirSync(outside('media'), { recursive: true });
    const { key, cert } = authority.issue('localhost', '127.0.0.1');
    writeFileSync(outside('tls.key'), key);
    writeFileSync(outside('tls.pem'), cert);
    writeFileSync(outside('ca.pem'), authority.pem);
    writeFileSync(outside('log.yaml'), logging);
    writeFileSync(join(root, 'etc/hosts'), `127.0.0.1 localhost ${hearthHost}\n`);
    const listener = 'type: http, bind_addresses: ["127.0.0.1"], resources: [{names: [client, federation]}]';
    writeFileSync(
      outside('homeserver.yaml'),
      `server_name: ${JSON.stringify(this.name)}
public_baseurl: ${JSON.stringify(`${this.url}/`)}
pid_file: ${inside('homeserver.pid')}
signing_key_path: ${inside('signing.key')}
media_store_path: ${inside('media')}
log_config: ${inside('log.yaml')}
listeners:
  - {port: ${port}, tls: false, ${listener}}
  - {port: ${tlsPort}, tls: true, ${listener}}
tls_certificate_path: ${inside('tls.pem')}
tls_private_key_path: ${inside('tls.key')}
federation_custom_ca_list: [${inside('ca.pem')}]
database: {name: sqlite3, args: {database: ${inside('homeserver.db')}}}
${settings}
${extra}
`,
    );
  }
}

const settings = `report_stats: false
suppress_key_server_warning: true
trusted_key_servers: []
ip_range_blacklist: []
federation_ip_range_blacklist: []
enable_registration: true
enable_registration_without_verification: true
registration_shared_secret: for registration
macaroon_secret_key: for macaroons
form_secret: for forms
bcrypt_rounds: 4
presence: {enabled: true}
allow_public_rooms_without_auth: true
allow_public_rooms_over_federation: true
room_list_publication_rules: [{action: allow}]
federation:
  {max_long_retry_delay: 1s, destination_min_retry_interval: 1s, destination_retry_multiplier: 1, destination_max_retry_interval: 1s}
rc_message: ${unlimited}
rc_registration: ${unlimited}
rc_login: {address: ${unlimited}, account: ${unlimited}, failed_attempts: ${unlimited}}
rc_joins: {local: ${unlimited}, remote: ${unlimited}}
rc_joins_per_room: ${unlimited}
rc_invites: {per_room: ${unlimited}, per_user: ${unlimited}, per_issuer: ${unlimited}}
rc_room_creation: ${unlimited}
rc_presence: {per_user: ${unlimited}}
rc_federation: {window_size: 1000, sleep_limit: 1000000, sleep_delay: 0, reject_limit: 1000000, concurrent: 100}`;

const logging = `version: 1
formatters: {plain: {format: '%(asctime)s %(levelname)s %(name)s %(request)s %(message)s'}}
handlers: {console: {class: logging.StreamHandler, formatter: plain}}
root: {level: INFO, handlers: [console]}
disable_existing_loggers: false
`;

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(2_000) })).ok;
  } catch {
    return false;
  }
}
