/**
 * Measures the processor time of finding the application services that receive an event: 100 services with three
 * namespaces each, and a room of 10,000 local members. With `--json`, prints the figures for the bench.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { Appservice } from '../../src/appservice-registry/index.ts';
import { RoomInterest } from '../../src/appservices/interest/room-interest.ts';
import { UserInterest } from '../../src/appservices/interest/user-interest.ts';
import { appserviceMigrations } from '../../src/appservices/migrations.ts';
import { bufferFacts } from '../../src/appservices/outbox/buffer-facts.ts';
import { FanOut } from '../../src/appservices/outbox/fan-out.ts';
import type { DeviceListChange } from '../../src/devices/index.ts';
import { DeviceKeyChanges } from '../../src/e2ee/index.ts';
import { CacheRegistry, cachesSection } from '../../src/kernel/caches/index.ts';
import { type Migration, migrate, openDatabase } from '../../src/kernel/database/index.ts';
import { jsonFacts, Stream } from '../../src/kernel/streams/index.ts';
import type { DeviceAddress } from '../../src/to-device/index.ts';
import type { OpenDatabase } from '../../test/support/databases/databases.ts';
import { sectionDefaults } from '../../test/support/inputs/section-defaults.ts';
import { alice, RoomsUnderTest } from '../../test/support/rooms/rooms.ts';

const serviceCount = 100;
const memberCount = 10_000;

/** Number of events of one measurement. */
const eventCount = 500;

/** Number of members that join at the same time. */
const joinsAtOnce = 100;

/** CPU microseconds per event. */
interface Figures {
  /** For the first event of a room, for which all members are read from the database. */
  readonly first: number;
  /** For an event that no service receives. */
  readonly none: number;
  /** For an event that every service receives. */
  readonly all: number;
}

const services = Array.from(
  { length: serviceCount },
  (_, number) =>
    new Appservice(
      {
        id: `bridge${number}`,
        url: 'http://127.0.0.1:1',
        asToken: `as${number}`,
        hsToken: `hs${number}`,
        senderLocalpart: `bridge${number}bot`,
        users: [
          { regex: `^@bridge${number}_.*:test$`, exclusive: true },
          { regex: `^@bridge${number}bot:test$`, exclusive: true },
        ],
        aliases: [{ regex: `^#bridge${number}_.*:test$`, exclusive: true }],
        rooms: [],
        rateLimited: false,
        receivesEphemeral: false,
        receivesDeviceChanges: false,
        managesDevices: false,
        protocols: [],
      },
      'test',
    ),
);

async function measure(directory: string): Promise<Figures> {
  const fixture = await RoomsUnderTest.open(openerIn(directory), [...appserviceMigrations]);
  const { database, streams, engine } = fixture;
  const roomId = await fixture.room(alice);
  const joinAll = async (members: readonly string[]) => {
    for (let start = 0; start < members.length; start += joinsAtOnce) {
      await Promise.all(
        members.slice(start, start + joinsAtOnce).map((userId) => fixture.join(userId, roomId)),
      );
    }
  };
  await joinAll(Array.from({ length: memberCount }, (_, index) => `@member${index}:test`));
  const fanOut = openFanOut(fixture);
  let followed = streams.current;
  /** Sends messages, and returns the CPU microseconds per message for finding the services. */
  const cpuOf = async (count: number) => {
    for (let number = 0; number < count; number++) await fixture.say(alice, roomId, `Message ${number}`);
    const before = process.cpuUsage();
    await fanOut.follow(followed, streams.current);
    const { user, system } = process.cpuUsage(before);
    followed = streams.current;
    return (user + system) / count;
  };
  const first = await cpuOf(1);
  const none = await cpuOf(eventCount);
  await joinAll(services.map(({ sender }) => sender));
  await fanOut.follow(followed, streams.current);
  followed = streams.current;
  const all = await cpuOf(eventCount);
  const { entries } = await database
    .reader<{ appservice_outbox: { position: number } }>()
    .selectFrom('appservice_outbox')
    .select(({ fn }) => fn.countAll<number>().as('entries'))
    .executeTakeFirstOrThrow();
  if (entries < eventCount * serviceCount) throw new Error(`Only ${entries} entries were written`);
  await engine.close();
  await database.close();
  return { first, none, all };
}

/** Opens the part of the server that finds the services of an event. */
function openFanOut({ database, streams, clock, engine, rooms }: RoomsUnderTest): FanOut {
  const caches = new CacheRegistry(clock, sectionDefaults(cachesSection));
  const users = new UserInterest(services, 'test', caches);
  const interest: RoomInterest = new RoomInterest({
    services,
    users,
    heads: engine.heads,
    caches,
    aliasesOf: (id) => rooms.aliases.of(id),
    membersBeforeUnhandledFacts: (id) => fanOut.membersBeforeUnhandledFacts(id),
  });
  const sources = {
    engine,
    queues: { toDeviceStream: new Stream<DeviceAddress>('to_device', jsonFacts()) },
    devices: { deviceListStream: new Stream<DeviceListChange>('device_lists', jsonFacts()) },
    keyChanges: new DeviceKeyChanges(),
  };
  const fanOut: FanOut = new FanOut({
    database,
    services,
    users,
    rooms: interest,
    buffer: bufferFacts(sources, streams, users, false),
    engine,
    userRooms: engine.userRooms,
    heads: engine.heads,
    devices: { changedSince: async () => [] },
    queues: { addressesBetween: async () => [] },
    onMember: () => undefined,
    onEntries: () => undefined,
  });
  return fanOut;
}

/** Returns a function that opens a new database in a directory. */
function openerIn(directory: string): OpenDatabase {
  const open = async (migrations: readonly Migration[] = []) => {
    const options = { kind: 'sqlite', path: join(directory, 'appservices.db') } as const;
    const database = await openDatabase(options, { log: pino({ enabled: false }) });
    await migrate(database, migrations);
    return database;
  };
  return open as OpenDatabase;
}

const directory = await mkdtemp(join(tmpdir(), 'hearth-appservices-'));
try {
  const figures = await measure(directory);
  if (process.argv.includes('--json')) console.log(JSON.stringify(figures));
  else console.table(figures);
} finally {
  await rm(directory, { recursive: true, force: true });
}
