/**
 * Measures how much disk space a purge of 90 % of the messages of a room releases:
 * `node bench/database/purge.ts [messages] [bytes]`. Prints the size of the database before and after, the time, and
 * the longest time to send a message in another room during the purge, on SQLite and on PostgreSQL. The rows of the
 * messages are copies of one sent message with other ids, positions and texts. A text is `bytes` long and random, like
 * an encrypted message; without `bytes` it is plain text of about 230 bytes.
 */
import { randomBytes } from 'node:crypto';
import { type Database, openDatabase, type SqlValue } from '../../src/kernel/database/index.ts';
import { silentLogger } from '../../src/kernel/observability/index.ts';
import type { RoomTables } from '../../src/room-engine/index.ts';
import { roomEngineManifest } from '../../src/room-engine/manifest.ts';
import { HistoryDeletion } from '../../src/rooms/purge/history-deletion.ts';
import { openPurgeMetrics } from '../../src/rooms/purge/purge-metrics.ts';
import { makeTestDatabase } from '../../test/support/databases/databases.ts';
import { startPostgres } from '../../test/support/databases/postgres-server.ts';
import { alice, RoomsUnderTest } from '../../test/support/rooms/rooms.ts';

const messages = Number(process.argv[2] ?? 1_000_000);
const textBytes = process.argv[3] === undefined ? undefined : Number(process.argv[3]);

/** Number of messages that are written in one batch. */
const batchSize = 5_000;

const plainText = 'Lorem ipsum dolor sit amet, consectetur adipiscing elit. '.repeat(4);

const signal = new AbortController().signal;

async function measure(kind: 'sqlite' | 'postgres'): Promise<void> {
  const { options, remove } = await makeTestDatabase(kind, RoomsUnderTest.migrations);
  const open = Object.assign(() => openDatabase(options, { log: silentLogger }), { kind });
  const fixture = await RoomsUnderTest.open(open as never);
  const database = fixture.database;
  const roomId = await fixture.room(alice);
  const template = await fixture.say(alice, roomId, 'template');
  await fixture.engine.settled();
  const head = (await fixture.engine.heads.get(roomId))!;
  const newestDepth = await addMessages(database, head.roomNid, template);
  let longest = 0;
  let isDone = false;
  const sending = (async () => {
    const other = await fixture.room(alice);
    for (let count = 0; !isDone; count++) {
      const sent = performance.now();
      await fixture.say(alice, other, `${count}`);
      longest = Math.max(longest, performance.now() - sent);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  })();
  const before = await database.size();
  const began = performance.now();
  const deletion = new HistoryDeletion({
    ...fixture,
    serverName: 'test',
    rows: [roomEngineManifest.roomRows],
    metrics: openPurgeMetrics(undefined),
    onEnd: async () => undefined,
  });
  const { roomNid } = head;
  const depth = newestDepth - messages / 10;
  const payload = { roomId, roomNid, depth, deleteLocalEvents: true, step: 'timeline', after: null } as const;
  await deletion.run({ payload, signal, progress: async () => undefined });
  const deleted = performance.now();
  await database.releaseSpace(signal);
  const released = performance.now();
  isDone = true;
  await sending;
  const print = async (name: string) => {
    const size = await database.size();
    console.log(`${kind}: ${name}: ${mebibytes(size)} MiB, ${Math.round((100 * size) / before)} %`);
  };
  console.log(
    `${kind}: ${messages} messages: ${mebibytes(before)} MiB; deleted in ${seconds(deleted - began)} s, ` +
      `released in ${seconds(released - deleted)} s`,
  );
  await print('after the purge');
  console.log(`${kind}: the longest write in another room took ${Math.round(longest)} ms`);
  await database.close();
  await remove();
}

/** Adds copies of a message to the end of its room. @param template the id of the message @returns the depth of the newest copy */
async function addMessages(database: Database, roomNid: number, template: string): Promise<number> {
  const row = await database
    .reader<RoomTables>()
    .selectFrom('events')
    .selectAll()
    .where('event_id', '=', template)
    .executeTakeFirstOrThrow();
  const event = JSON.parse(row.json);
  let previous = template;
  for (let start = 1; start <= messages; start += batchSize) {
    const events: SqlValue[][] = [];
    const times: SqlValue[][] = [];
    for (let index = start; index < start + batchSize; index++) {
      const eventId = `$${randomBytes(32).toString('base64url')}`;
      const nid = row.nid + 1_000_000 + index;
      const depth = row.depth + index;
      const body = `${index} ${textBytes === undefined ? plainText : randomBytes((textBytes * 3) / 4).toString('base64')}`;
      const json = { ...event, depth, prev_events: [previous], content: { msgtype: 'm.text', body } };
      events.push([nid, eventId, roomNid, depth, nid, row.state_group, 0, JSON.stringify(json)]);
      times.push([roomNid, event.origin_server_ts + index, nid]);
      previous = eventId;
    }
    await database.batch([
      {
        sql: 'insert into events (nid, event_id, room_nid, depth, stream, state_group, flags, json) values (?, ?, ?, ?, ?, ?, ?, ?)',
        rows: events,
      },
      { sql: 'insert into event_times (room_nid, ts, nid) values (?, ?, ?)', rows: times },
    ]);
  }
  return row.depth + messages;
}

const mebibytes = (bytes: number) => Math.round(bytes / 2 ** 20);
const seconds = (milliseconds: number) => (milliseconds / 1_000).toFixed(1);

const postgres = await startPostgres();
process.env['HEARTH_TEST_POSTGRES_PORT'] = String(postgres.port);
try {
  await measure('sqlite');
  await measure('postgres');
} finally {
  await postgres.stop();
}
