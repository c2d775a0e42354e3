/**
 * How much keys and messages to devices cost beyond what they read and write: `node bench/e2ee/main.ts [--postgres]`.
 * Each line holds a piece of work against plain statements for as many rows on the same database, in turns.
 */
import type { Statement } from '../../src/kernel/database/index.ts';
import type { ClientDevice } from '../../test/support/users/client-device.ts';
import { openWorld, serverName, type World } from './world.ts';

const rounds = 7;
const algorithm = 'signed_curve25519';

interface Comparison {
  readonly name: string;
  /** How many things one round does, and what they are. */
  readonly count: number;
  readonly unit: string;
  readonly work: () => Promise<unknown>;
  readonly plain: () => Promise<unknown>;
  /** Done before each round; not measured. */
  readonly prepare?: () => Promise<unknown>;
}

/** The best of several rounds each, so that the machine's other work counts little. */
async function compare({ name, count, unit, work, plain, prepare }: Comparison): Promise<void> {
  const best = { work: Number.POSITIVE_INFINITY, plain: Number.POSITIVE_INFINITY };
  for (let round = 0; round < rounds; round++) {
    await prepare?.();
    best.work = Math.min(best.work, await milliseconds(work));
    best.plain = Math.min(best.plain, await milliseconds(plain));
  }
  const cells = [
    `${best.work.toFixed(1)} ms`.padStart(12),
    `${Math.round((count / best.work) * 1_000)} ${unit}/s`.padStart(20),
    `${(best.work / best.plain).toFixed(2)} x plain`.padStart(16),
  ];
  console.log(name.padEnd(44), ...cells);
}

async function milliseconds(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** Against reading the same rows. */
async function keyQuery({ database, query, makeDevices }: World): Promise<void> {
  await makeDevices(1_000, 5, 0);
  const userIds = Array.from({ length: 1_000 }, (_, n) => `@user${n}:${serverName}`);
  const wanted = new Map(userIds.map((userId) => [userId, []]));
  const reader = database.reader<{ device_keys: { user_id: string; device_id: string; keys: string } }>();
  await compare({
    name: 'key query, 1,000 users with 5 devices',
    count: 5_000,
    unit: 'devices',
    work: () => query.query(userIds[0]!, wanted, 0),
    plain: () => reader.selectFrom('device_keys').selectAll().where('user_id', 'in', userIds).execute(),
  });
}

/** Against deleting and inserting as many rows, in as many transactions. */
async function claims(world: World, devices: readonly ClientDevice[]): Promise<void> {
  const { claiming, database, upload } = world;
  let first = 1_000;
  const refill = async () => {
    first += 10;
    for (const device of devices) {
      const one_time_keys = device.oneTimeKeys(10, first);
      await upload.upload(device.userId, device.deviceId, { one_time_keys });
    }
  };
  const wishes = Array.from({ length: 10 }, () => devices)
    .flat()
    .map(({ userId, deviceId }) => new Map([[userId, new Map([[deviceId, algorithm]])]]));
  for (const atOnce of [1, wishes.length]) {
    const chosen = atOnce === 1 ? wishes.slice(0, devices.length) : wishes;
    const inTurns = async (some: (part: typeof wishes) => Promise<unknown>) => {
      for (let start = 0; start < chosen.length; start += atOnce) {
        await some(chosen.slice(start, start + atOnce));
      }
    };
    await compare({
      name: `key claims, ${atOnce} at once`,
      count: chosen.length,
      unit: 'keys',
      prepare: refill,
      work: () => inTurns((part) => Promise.all(part.map((wish) => claiming.claim(wish, 0)))),
      plain: () => inTurns((part) => database.batch(plainClaims(part.length))),
    });
  }
}

let plainId = 1_000_000_000;

/** What claims do to the tables: rows go, and others are written. */
function plainClaims(count: number): Statement[] {
  const ids = Array.from({ length: count }, () => plainId++);
  const row = (id: number) => [`@plain:${serverName}`, 'DEVICE', id, algorithm, `K${id}`, 'x'.repeat(43)];
  return [
    { sql: 'delete from one_time_keys where id = ?', rows: ids.map((id) => [id]) },
    {
      sql: 'insert into claimed_one_time_keys (user_id, device_id, id, algorithm, key_id, digest) values (?, ?, ?, ?, ?, ?)',
      rows: ids.map(row),
    },
  ];
}

/** Against inserting the same messages in one batch. */
async function fanOut({ database, toDevice }: World, devices: readonly ClientDevice[]): Promise<void> {
  const [sender] = devices;
  if (!sender) return;
  const ciphertext = 'x'.repeat(1_000);
  const contents = Map.groupBy(devices, ({ userId }) => userId);
  const messages = new Map(
    [...contents].map(([userId, own]) => [
      userId,
      new Map(own.map(({ deviceId }) => [deviceId, { ciphertext, sender_key: deviceId }])),
    ]),
  );
  let transaction = 0;
  const origin = { name: sender.userId, deviceId: sender.deviceId };
  const sql = 'insert into to_device_messages (user_id, device_id, position, message) values (?, ?, ?, ?)';
  const rowOf = ({ deviceId }: ClientDevice) => [
    `@plain:${serverName}`,
    deviceId,
    plainId++,
    JSON.stringify({ sender: sender.userId, type: 'm.room.encrypted', content: { ciphertext, deviceId } }),
  ];
  await compare({
    name: `messages to ${devices.length} devices at once`,
    count: devices.length,
    unit: 'messages',
    work: () =>
      toDevice.send({
        sender: sender.userId,
        origin,
        txnId: `t${transaction++}`,
        type: 'm.room.encrypted',
        messages,
      }),
    plain: () => database.batch([{ sql, rows: devices.map(rowOf) }]),
  });
}

const onPostgres = process.argv.includes('--postgres');
console.log(onPostgres ? 'PostgreSQL' : 'SQLite');
for (const [bench, users] of [
  [keyQuery, 0],
  [claims, 20],
  [fanOut, 400],
] as const) {
  const world = await openWorld(onPostgres);
  try {
    await bench(world, await world.makeDevices(users, 5, 0));
  } finally {
    await world.close();
  }
}
