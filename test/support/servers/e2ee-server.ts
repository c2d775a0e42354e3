import assert from 'node:assert/strict';
import { sections } from '../../../src/configuration.ts';
import {
  DeviceKeyChanges,
  type E2ee,
  type E2eeDeps,
  e2eeManifest,
  e2eeMigrations,
  openE2ee,
  refuseIdsOfKeys,
} from '../../../src/e2ee/index.ts';
import { federationMigrations } from '../../../src/federation/index.ts';
import { Jobs, jobMigrations } from '../../../src/kernel/jobs/index.ts';
import { silentLogger } from '../../../src/kernel/observability/index.ts';
import { systemRandomness } from '../../../src/kernel/randomness.ts';
import { OwnedRows } from '../../../src/kernel/slices/index.ts';
import type { JsonObject } from '../../../src/protocol/index.ts';
import { roomMigrations } from '../../../src/room-engine/index.ts';
import { roomFederationMigrations } from '../../../src/room-federation/index.ts';
import { openRooms, type Rooms } from '../../../src/rooms/index.ts';
import {
  MessageQueues,
  ToDevice,
  toDeviceManifest,
  toDeviceMigrations,
  toDeviceRoutes,
} from '../../../src/to-device/index.ts';
import type { OpenDatabase } from '../databases/databases.ts';
import { sectionDefaults } from '../inputs/section-defaults.ts';
import { newSigningKey } from '../inputs/signing-key.ts';
import { ClientDevice } from '../users/client-device.ts';
import { AccountsServer, type Answer, type LoggedInUser, type TestEnvironment } from './accounts-server.ts';

const signer = { serverName: 'test', key: newSigningKey('test') };

const openRoomsIn = (environment: TestEnvironment) =>
  openRooms(
    {
      ...environment,
      signer,
      randomness: systemRandomness,
      profiles: { profile: async () => ({}) },
      users: { isAdmin: async () => false },
      eventCacheSize: 10_000,
    },
    sectionDefaults(sections.rooms),
  );

type Deps = Pick<E2eeServer, 'e2ee' | 'rooms' | 'queues' | 'keyChanges' | 'jobs' | 'toDevice'>;

/** A server with accounts, rooms, to-device messages and end-to-end encryption keys. */
export class E2eeServer {
  readonly server: AccountsServer;
  readonly e2ee: E2ee;
  readonly rooms: Rooms;
  readonly queues: MessageQueues;
  readonly keyChanges: DeviceKeyChanges;
  readonly jobs: Jobs;
  readonly toDevice: ToDevice;

  private constructor(server: AccountsServer, deps: Deps) {
    this.server = server;
    this.e2ee = deps.e2ee;
    this.rooms = deps.rooms;
    this.queues = deps.queues;
    this.keyChanges = deps.keyChanges;
    this.jobs = deps.jobs;
    this.toDevice = deps.toDevice;
  }

  static async start(open: OpenDatabase, more: Partial<E2eeDeps> = {}): Promise<E2eeServer> {
    const keyChanges = new DeviceKeyChanges();
    let queues: MessageQueues;
    let deps: Deps;
    const server = await AccountsServer.start(open, {
      migrations: [
        ...jobMigrations,
        ...roomMigrations,
        ...roomFederationMigrations,
        ...toDeviceMigrations,
        ...e2eeMigrations,
        ...federationMigrations,
      ],
      extensions: ({ database, caches }) => {
        queues = new MessageQueues(database, caches);
        const rows = new OwnedRows([toDeviceManifest, e2eeManifest]);
        return {
          devices: { cleanups: [keyChanges, rows], checkNewIds: refuseIdsOfKeys },
          lifecycleHooks: [rows],
        };
      },
      routes: async ({ devices, reauthenticator }, environment) => {
        const { streams, clock, caches } = environment;
        const rooms = await openRoomsIn(environment);
        const serverName = 'test';
        const { engine } = rooms;
        const common = { ...environment, log: silentLogger, devices, engine, caches, keyChanges, serverName };
        const jobs = new Jobs({ ...environment, log: silentLogger, isOnlyProcess: true });
        const e2ee = await openE2ee({ ...common, queues, reauthenticator, jobs, ...more });
        const toDevice = new ToDevice({ streams, clock, caches, devices, queues, serverName });
        deps = { e2ee, rooms, queues, keyChanges, jobs, toDevice };
        await jobs.start();
        return [...e2ee.routes, ...toDeviceRoutes(toDevice)];
      },
    });
    return new E2eeServer(server, deps!);
  }

  async stop(): Promise<void> {
    await this.jobs.stop();
    await this.server.stop();
  }

  get position(): number {
    return this.server.streams.current;
  }

  /** Calls the server with the user's access token. */
  async call(user: { token: string }, method: string, path: string, body?: unknown): Promise<Answer> {
    const url = path.startsWith('/_') ? path : `/_matrix/client/v3${path}`;
    return this.server.call(method, url, { token: user.token, body });
  }

  /** Registers a user and uploads the identity keys of their device. */
  async user(name: string): Promise<UserWithKeys> {
    return this.uploadDeviceKeys(await this.server.register(name));
  }

  /** Logs the user in on another device and uploads its identity keys. */
  async device(name: string): Promise<UserWithKeys> {
    return this.uploadDeviceKeys(await this.server.login(name));
  }

  async uploadDeviceKeys(user: LoggedInUser): Promise<UserWithKeys> {
    const client = new ClientDevice(user.userId, user.deviceId);
    const deviceKeys = client.deviceKeys();
    const answer = await this.call(user, 'POST', '/keys/upload', { device_keys: deviceKeys });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return { ...user, client, deviceKeys };
  }

  /** Makes a public room; the first member creates it and the others join. @returns the room id */
  async room(...members: readonly [LoggedInUser, ...LoggedInUser[]]): Promise<string> {
    const [creator, ...others] = members;
    const roomId = await this.rooms.creation.create(creator.userId, { preset: 'public_chat' });
    for (const { userId } of others) await this.rooms.memberships.join(userId, roomId);
    return roomId;
  }

  /** Counts the rows of a table. */
  async rows(table: string): Promise<number> {
    const reader = this.server.database.reader<Record<string, Record<string, unknown>>>();
    const counted = await reader
      .selectFrom(table)
      .select(({ fn }) => fn.countAll().as('n'))
      .executeTakeFirstOrThrow();
    return Number(counted.n);
  }
}

export interface UserWithKeys extends LoggedInUser {
  readonly client: ClientDevice;
  readonly deviceKeys: JsonObject;
}

/** Returns the status and errcode of a response. */
export const codeOf = ({ status, body }: Answer) => [status, body['errcode']];
