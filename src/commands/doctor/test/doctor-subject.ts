import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { stringify } from 'yaml';
import { databaseOption } from '../../../../test/support/databases/database-option.ts';
import { makeTestDatabase, type TestDatabase } from '../../../../test/support/databases/databases.ts';
import { freePort } from '../../../../test/support/network/free-port.ts';
import { commonTestAuthority, type TestAuthority } from '../../../../test/support/network/test-authority.ts';
import {
  type ConfiguredServer,
  startConfigured,
} from '../../../../test/support/servers/configured-server.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { systemRandomness } from '../../../kernel/randomness.ts';
import { migrations } from '../../../slices.ts';
import { diagnose } from '../doctor.ts';
import type { Section } from '../examine.ts';
import type { Finding } from '../finding.ts';
import type { Machine } from '../machine.ts';
import { openPublicNetwork, type PublicNetwork } from './public-network.ts';

const GiB = 1024 ** 3;
/** Path of the signing key that the server has a copy of. */
export const fixtureKey = join(import.meta.dirname, '../../../../test/fixtures/test.signing.key');

/** A machine with enough of everything. */
const goodMachine: Machine = {
  space: async () => ({ free: 50 * GiB, total: 100 * GiB, freeInodes: 0.9 }),
  memory: () => 8 * GiB,
  maxOpenFiles: () => 65_536,
};

/** The inputs that a test changes before the checks run; the running server is not changed. */
export interface SubjectChange {
  /** Options that replace those of the configuration. */
  readonly options?: Record<string, unknown>;
  readonly machine?: Partial<Machine>;
  readonly now?: () => number;
  readonly backupMark?: string | undefined;
  /** Permissions of the configuration file. */
  readonly mode?: number;
}

/** A server without problems, with the network around it: no check finds anything to mend. */
export interface DoctorSubject {
  readonly folder: string;
  readonly port: number;
  readonly keyFile: string;
  readonly network: PublicNetwork;
  readonly authority: TestAuthority;
  /** The file whose modification time is the time of the last backup. */
  mark(): string;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Runs all checks. @returns the findings by section of the report */
  sections(change?: SubjectChange): Promise<readonly Section[]>;
  /** Runs all checks. @returns the findings of all sections */
  findings(change?: SubjectChange): Promise<readonly Finding[]>;
}

/** Starts the server before the tests of a describe, and stops it after them. */
export function doctorSubject(database: 'sqlite' | 'postgres'): DoctorSubject {
  const authority = commonTestAuthority();
  let [folder, keyFile, port] = ['', '', 0];
  let testDatabase: TestDatabase;
  let network: PublicNetwork;
  let server: ConfiguredServer | undefined;
  let options: Record<string, unknown> = {};

  const mark = () => join(folder, 'backup-mark');
  const start = async () => {
    server = await startConfigured(stringify(options), folder);
  };
  const stop = async () => {
    await server?.stop();
    server = undefined;
  };

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-doctor-'));
    port = await freePort();
    network = await openPublicNetwork(port, authority);
    testDatabase = await makeTestDatabase(database, migrations);
    keyFile = join(folder, 'signing.key');
    copyFileSync(fixtureKey, keyFile);
    chmodSync(keyFile, 0o600);
    writeFileSync(mark(), '');
    options = {
      server_name: 'example.org',
      public_baseurl: 'https://matrix.example.org/',
      serve_server_wellknown: true,
      https_proxy: network.proxy,
      trusted_key_servers: [{ server_name: 'keys.example' }],
      suppress_key_server_warning: true,
      media_store_path: join(folder, 'media'),
      signing_key_path: keyFile,
      macaroon_secret_key: 'secret',
      database: databaseOption(testDatabase.options),
      listeners: [
        {
          port,
          type: 'http',
          bind_addresses: ['127.0.0.1'],
          resources: [{ names: ['client', 'federation'] }],
        },
      ],
    };
    await start();
  });
  after(async () => {
    await stop();
    await network.close();
    await testDatabase.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  const sections = (change: SubjectChange = {}) => {
    const file = join(folder, 'homeserver.yaml');
    writeFileSync(file, stringify({ ...options, ...change.options }));
    chmodSync(file, change.mode ?? 0o600);
    const systemInputs = {
      clock: { ...systemClock, ...(change.now && { now: change.now }) },
      randomness: systemRandomness,
      resolver: network.resolver,
      machine: { ...goodMachine, ...change.machine },
      authorities: [authority.pem],
    };
    const backupMark = 'backupMark' in change ? change.backupMark : mark();
    return diagnose([file], { backupMark }, systemInputs);
  };
  const findings = async (change: SubjectChange = {}) =>
    (await sections(change)).flatMap((section) => section.findings);

  return {
    get folder() {
      return folder;
    },
    get port() {
      return port;
    },
    get keyFile() {
      return keyFile;
    },
    get network() {
      return network;
    },
    authority,
    mark,
    start,
    stop,
    sections,
    findings,
  };
}

/** Asserts that there is a finding with this name and message, and that it has this level and this way to mend it. */
export function assertFound(
  found: readonly Finding[],
  name: string,
  level: Finding['level'],
  message: RegExp,
  fix?: RegExp,
) {
  const candidates = found.filter((one) => one.name === name);
  const one = candidates.find((other) => message.test(other.message));
  assert.ok(
    one,
    `${name} with ${message} in ${JSON.stringify(candidates.length > 0 ? candidates : found, null, 1)}`,
  );
  assert.equal(one.level, level, JSON.stringify(one));
  if (fix) assert.match(one.fix ?? '', fix);
}

export const problemsIn = (found: readonly Finding[]) =>
  found.filter(({ level }) => level === 'warning' || level === 'error');
