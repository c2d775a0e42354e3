import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { writeSigningKeys } from '../../src/protocol/index.ts';
import { newSigningKey } from '../support/inputs/signing-key.ts';
import { freePort } from '../support/network/free-port.ts';
import { openTcpProxy, type TcpProxy } from '../support/network/tcp-proxy.ts';
import type { TestAuthority } from '../support/network/test-authority.ts';
import { referenceConfiguration, referenceLogging } from './reference-configuration.ts';

const run = promisify(execFile);
const root = join(process.env['HEARTH_REFERENCE_DIR'] ?? '/var/tmp/hearth-reference', 'root');
const setup = join(import.meta.dirname, 'reference', 'setup.sh');
/**
 * Starts the reference server without flushes of its database, because flushes take most of the time of its writes.
 * Writes survive a kill of the process even without flushes.
 */
const program = `
import runpy, sqlite3
connect = sqlite3.connect
def connect_without_flushes(*values, **options):
    connection = connect(*values, **options)
    connection.execute('pragma synchronous = off')
    return connection
sqlite3.connect = connect_without_flushes
runpy.run_module('synapse.app.homeserver', run_name='__main__', alter_sys=True)
`;
const environment = ['-i', 'PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'LC_ALL=C.UTF-8', 'HOME=/root'];
/** Maximum time in milliseconds until a started server answers. */
const startTimeout = 120_000;
let instances = 0;

/** The reference homeserver (Debian's matrix-synapse) in its own process and folder. */
export class ReferenceServer {
  /** Server name, the domain of its users' ids. */
  readonly name: string;
  readonly url: string;
  /** The proxy of this server: other servers send their requests to it. */
  readonly proxy: TcpProxy;
  /** Path of its folder inside of the chroot. */
  readonly #inside: string;
  /** Path of its folder outside of the chroot. */
  readonly #outside: string;
  #child: ChildProcess | undefined;

  private constructor(proxy: TcpProxy, url: string, inside: string) {
    this.name = `localhost:${proxy.port}`;
    this.proxy = proxy;
    this.url = url;
    this.#inside = inside;
    this.#outside = join(root, inside);
    process.once('exit', () => this.#child?.kill('SIGKILL'));
  }

  /** Makes an instance with an empty database; installs the server first if that has not been done. */
  static async create(authority: TestAuthority): Promise<ReferenceServer> {
    await run(setup).catch((error: Error & { stderr?: string }) => {
      throw new Error(`the reference server cannot be installed:\n${error.stderr || error.message}`);
    });
    removeLeftovers();
    const [port, tlsPort] = [await freePort(), await freePort()];
    const inside = `/srv/${process.pid}-${++instances}`;
    const proxy = await openTcpProxy();
    proxy.target = tlsPort;
    const server = new ReferenceServer(proxy, `http://127.0.0.1:${port}`, inside);
    server.#configure(authority, port, tlsPort);
    return server;
  }

  /** Starts the server and waits until it answers. */
  async start(): Promise<void> {
    const log = openSync(this.logFile, 'a');
    // The reference server is killed when this process ends, for whatever reason.
    const command = ['--pdeathsig', 'KILL', 'chroot', ...this.#command()];
    const child = spawn('setpriv', command, { stdio: ['ignore', log, log] });
    closeSync(log);
    this.#child = child;
    const until = performance.now() + startTimeout;
    while (!(await answers(`${this.url}/_matrix/client/versions`))) {
      const hasEnded = child.exitCode !== null || child.signalCode !== null;
      if (hasEnded || performance.now() > until) {
        throw new Error(`the reference server does not answer; its log:\n${this.log(40)}`);
      }
      await sleep(50);
    }
  }

  get logFile(): string {
    return join(this.#outside, 'synapse.log');
  }

  /** Returns the last lines of its log. */
  log(lines: number): string {
    return readFileSync(this.logFile, 'utf8').split('\n').slice(-lines).join('\n');
  }

  stop(): Promise<void> {
    return this.#end('SIGTERM');
  }

  kill(): Promise<void> {
    return this.#end('SIGKILL');
  }

  async remove(): Promise<void> {
    await this.proxy.close();
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

  #command(): string[] {
    const options = ['-c', join(this.#inside, 'homeserver.yaml')];
    return [root, 'env', ...environment, 'python3', '-c', program, ...options];
  }

  #configure(authority: TestAuthority, port: number, tlsPort: number): void {
    const write = (file: string, text: string) => writeFileSync(join(this.#outside, file), text);
    mkdirSync(join(this.#outside, 'media'), { recursive: true });
    const { key, cert } = authority.issue('localhost', '127.0.0.1');
    write('tls.key', key);
    write('tls.pem', cert);
    write('ca.pem', authority.pem);
    write('signing.key', writeSigningKeys([newSigningKey('a_key')]));
    write('log.yaml', referenceLogging);
    const settings = { name: this.name, port, tlsPort, folder: this.#inside };
    write('homeserver.yaml', referenceConfiguration(settings));
  }
}

/** Removes the folders of instances whose test process was killed. */
function removeLeftovers(): void {
  for (const folder of readdirSync(join(root, 'srv'))) {
    const [, owner] = /^(\d+)-\d+$/.exec(folder) ?? [];
    if (owner && !isAlive(Number(owner))) rmSync(join(root, 'srv', folder), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(2_000) })).ok;
  } catch {
    return false;
  }
}
