import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { Devices, deviceMigrations } from '../../src/devices/index.ts';
import { DeviceKeyChanges, e2eeManifest, e2eeMigrations } from '../../src/e2ee/index.ts';
import { KeyClaiming } from '../../src/e2ee/keys/key-claiming.ts';
import { KeyQuery } from '../../src/e2ee/keys/key-query.ts';
import { KeyUpload } from '../../src/e2ee/keys/key-upload.ts';
import { LocalKeyClaims } from '../../src/e2ee/keys/local-key-claims.ts';
import { CacheRegistry, cachesSection } from '../../src/kernel/caches/index.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import {
  type Database,
  type DatabaseOptions,
  migrate,
  openDatabase,
} from '../../src/kernel/database/index.ts';
import { silentLogger } from '../../src/kernel/observability/index.ts';
import { systemRandomness } from '../../src/kernel/randomness.ts';
import { OwnedRows } from '../../src/kernel/slices/index.ts';
import { LocalStreams, Sequence, streamMigrations } from '../../src/kernel/streams/index.ts';
import { MessageQueues, ToDevice, toDeviceManifest, toDeviceMigrations } from '../../src/to-device/index.ts';
import { sectionDefaults } from '../../test/support/inputs/section-defaults.ts';
import { ClientDevice } from '../../test/support/users/client-device.ts';
import { postgresDatabase } from '../targets/postgres.ts';

export const serverName = 'bench';

/**
 * The services for keys of devices and for to-device messages, on a new database that is as durable as in production.
 */
export interface E2eeFixture {
  readonly database: Database;
  readonly upload: KeyUpload;
  readonly query: KeyQuery;
  readonly claiming: KeyClaiming;
  readonly toDevice: ToDevice;
  /** Creates devices with identity keys and some one-time keys. */
  makeDevices(users: number, perUser: number, oneTimeKeys: number): Promise<ClientDevice[]>;
  close(): Promise<void>;
}

/** @param onPostgres whether the database is PostgreSQL instead of SQLite */
export async function openE2eeFixture(onPostgres: boolean): Promise<E2eeFixture> {
  const testDatabase = await (onPostgres ? postgresTestDatabase() : sqliteDatabase());
  const database = await openDatabase(testDatabase.options, { log: pino({ enabled: false }) });
  await migrate(database, [
    ...streamMigrations,
    ...deviceMigrations,
    ...toDeviceMigrations,
    ...e2eeMigrations,
  ]);
  const streams = await LocalStreams.open({ database, clock: systemClock, log: silentLogger });
  const keyChanges = new DeviceKeyChanges();
  const caches = new CacheRegistry(systemClock, sectionDefaults(cachesSection));
  const queues = new MessageQueues(database, caches);
  const kernel = { database, streams, clock: systemClock, randomness: systemRandomness, serverName };
  const devices = new Devices(kernel, [keyChanges, new OwnedRows([toDeviceManifest, e2eeManifest])]);
  const { keyStream } = keyChanges;
  const keyIds = await Sequence.open(database, 'one_time_keys');
  const upload = new KeyUpload({ ...kernel, devices, keyStream, keyIds });
  const claims = new LocalKeyClaims(database, streams, keyStream);
  return {
    database,
    upload,
    query: new KeyQuery({ ...kernel, devices, remote: undefined }),
    claiming: new KeyClaiming({ claims, serverName, clock: systemClock, remote: undefined }),
    toDevice: new ToDevice({ ...kernel, caches, devices, queues }),
    async makeDevices(users, perUser, oneTimeKeys) {
      const made = Array.from(
        { length: users * perUser },
        (_, n) => new ClientDevice(`@user${Math.floor(n / perUser)}:${serverName}`, `DEVICE${n}`),
      );
      await Promise.all(made.map((device) => makeDevice(devices, upload, device, oneTimeKeys)));
      return made;
    },
    async close() {
      await database.close();
      await testDatabase.remove();
    },
  };
}

/** Creates a device, and uploads its identity keys and one-time keys. */
async function makeDevice(
  devices: Devices,
  upload: KeyUpload,
  device: ClientDevice,
  oneTimeKeys: number,
): Promise<void> {
  const { userId, deviceId } = device;
  await devices.create({ userId, deviceId, displayName: 'bench device' });
  const device_keys = device.deviceKeys();
  await upload.upload(userId, deviceId, { device_keys, one_time_keys: device.oneTimeKeys(oneTimeKeys) });
}

/** A new database that `remove` deletes. */
interface TestDatabase {
  readonly options: DatabaseOptions;
  remove(): Promise<void>;
}

async function sqliteDatabase(): Promise<TestDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'hearth-bench-'));
  return {
    options: { kind: 'sqlite', path: join(folder, 'bench.db') },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

async function postgresTestDatabase(): Promise<TestDatabase> {
  const server = await postgresDatabase();
  const { args } = server.settings as { args: Record<string, string> & { port: number } };
  return {
    options: {
      kind: 'postgres',
      host: args.host ?? '',
      port: args.port,
      user: args.user ?? '',
      password: args.password ?? '',
      database: args.dbname ?? '',
      connections: { min: 3, max: 10 },
    },
    remove: () => server.close(),
  };
}
