/**
 * Measures what key and to-device operations cost beyond their reads and writes: `node bench/e2ee/main.ts
 * [--postgres]`. Each line compares an operation with plain statements for as many rows on the same database,
 * in alternating rounds.
 */
import type { Statement } from '../../src/kernel/database/index.ts';
import type { ClientDevice } from '../../test/support/users/client-device.ts';
import { compare } from '../compare.ts';
import { type E2eeFixture, openE2eeFixture, serverName } from './fixture.ts';

const algorithm = 'signed_curve25519';

/** Measures key queries, compared with reading the same rows. */
async function keyQuery({ database, query, makeDevices }: E2eeFixture): Promise<void> {
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

/**
 * Measures claims of one-time keys, first one at a time and then all at once, compared with statements that delete and
 * insert the same number of rows in the same number of transactions.
 */
async function claims(fixture: E2eeFixture, devices: readonly ClientDevice[]): Promise<void> {
  const { claiming, database, upload } = fixture;
  let first = 1_000;
  const refill = async () => {
    first += 10;
    for (const device of devices) {
      const one_time_keys = device.oneTimeKeys(10, first);
      await upload.upload(device.userId, device.deviceId, { one_time_keys });
    }
  };
  const claimRequests = Array.from({ length: 10 }, () => devices)
    .flat()
    .map(({ userId, deviceId }) => new Map([[userId, new Map([[deviceId, algorithm]])]]));
  for (const atOnce of [1, claimRequests.length]) {
    const selected = atOnce === 1 ? claimRequests.slice(0, devices.length) : claimRequests;
    const forEachGroup = async (run: (group: typeof claimRequests) => Promise<unknown>) => {
      for (let start = 0; start < selected.length; start += atOnce) {
        await run(selected.slice(start, start + atOnce));
      }
    };
    await compare({
      name: `key claims, ${atOnce} at once`,
      count: selected.length,
      unit: 'keys',
      prepare: refill,
      work: () => forEachGroup((group) => Promise.all(group.map((request) => claiming.claim(request, 0)))),
      plain: () => forEachGroup((group) => database.batch(plainClaims(group.length))),
    });
  }
}

/** The next id of a row that plain statements write; higher than the ids that the server assigns. */
let plainId = 1_000_000_000;

/** Returns statements that delete and insert as many rows as `count` claims do. */
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

/** Measures the fan-out of a to-device message, compared with inserting the same messages in one batch. */
async function fanOut({ database, toDevice }: E2eeFixture, devices: readonly ClientDevice[]): Promise<void> {
  const [sender] = devices;
  if (!sender) return;
  const ciphertext = 'x'.repeat(1_000);
  const contents = Map.groupBy(devices, ({ userId }) => userId);
  const messages = new Map(
    [...contents].map(([userId, devicesOfUser]) => [
      userId,
      new Map(devicesOfUser.map(({ deviceId }) => [deviceId, { ciphertext, sender_key: deviceId }])),
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
    name: `to-device messages to ${devices.length} devices at once`,
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
  const fixture = await openE2eeFixture(onPostgres);
  try {
    await bench(fixture, await fixture.makeDevices(users, 5, 0));
  } finally {
    await fixture.close();
  }
}
